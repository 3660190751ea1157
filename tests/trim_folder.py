#!/usr/bin/env python3
"""Where the files of a folder have more than MOST bytes, removes those that nobody has read or written for the longest
time, until they have LEFT at most.

usage: trim_folder.py FOLDER MOST LEFT"""

import pathlib
import sys

folder, most, left = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
files = []
for path in pathlib.Path(folder).rglob("*"):
    about = path.lstat()
    if path.is_file() and not path.is_symlink():
        # Times of reading may be kept only once a day.
        files.append((max(about.st_atime, about.st_mtime), about.st_size, path))
size = sum(file[1] for file in files)
if size > most:
    for _, bytes_, path in sorted(files):
        if size <= left:
            break
        path.unlink(missing_ok=True)
        size -= bytes_
