#!/usr/bin/env python3
"""Serves a folder on a free port of this machine, which it prints, with the faults of real servers.
The first part of a path says which:
  /plain/FILE      none
  /no_ranges/FILE  always answers with the whole file
  /breaks/FILE     closes the connection in the middle of each answer that is longer than 1000 bytes
  /short/FILE      sends half of the file, says nothing of its size, and calls that the end
usage: fetch_server_testing.py FOLDER LOG      each request is a line of LOG: the path and its range"""

import http.server
import pathlib
import re
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.headers.get("Range", "-")
        with open(sys.argv[2], "a") as log:
            log.write(f"{self.path} {asked}\n")
        fault, name = self.path[1:].split("/")
        try:
            content = (pathlib.Path(sys.argv[1]) / name).read_bytes()
        except FileNotFoundError:
            self.send_error(404)
            return
        first = re.fullmatch(r"bytes=(\d+)-", asked)
        if first and fault != "no_ranges":
            self.answer_range(content, int(first[1]), fault)
        elif fault == "short":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
        else:
            self.send_response(200)
            self.send(content, fault)

    def answer_range(self, content, first, fault):
        if first >= len(content):
            self.send_error(416)
            return
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send(content[first:], fault)

    def send(self, content, fault):
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        breaks = fault == "breaks" and len(content) > 1000
        self.wfile.write(content[: len(content) // 2] if breaks else content)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
