// A synthetic trace: two stages, one cut, one step of two microbatches under 1f1b.
#pragma once

#include <string>

#include "coordinator/trace/trace.h"

namespace thinwire {

inline TraceSlice NewSlice(const std::string& name, TraceSlice::Thread thread, int64_t begin,
                           int64_t end) {
  TraceSlice slice;
  slice.set_name(name);
  slice.set_thread(thread);
  slice.set_step(3);
  slice.set_begin(begin);
  slice.set_end(end);
  return slice;
}

// Returns a slice of the executor's work on a microbatch.
inline TraceSlice Compute(const std::string& name, uint32_t microbatch, int64_t begin,
                          int64_t end) {
  TraceSlice slice = NewSlice(name, TraceSlice::EXECUTOR, begin, end);
  slice.set_microbatch(microbatch);
  return slice;
}

// Returns a slice about a message at the one cut.
inline TraceSlice OfMessage(const std::string& name, TraceSlice::Thread thread, bool gradient,
                            uint32_t microbatch, int64_t begin, int64_t end) {
  TraceSlice slice = NewSlice(name, thread, begin, end);
  slice.set_microbatch(microbatch);
  slice.set_cut(0);
  slice.set_gradient(gradient);
  return slice;
}

// Adds a message that the sender's executor hands over at `at`. Relative to `at` it is encoded from
// 1 to 3, sent from 3 to 4, arrives at 6 and is decoded from 7 to 9.
inline void AddMessage(bool gradient, uint32_t microbatch, int64_t at, RunTrace* trace) {
  StageTrace& from = trace->stages[gradient ? 1 : 0];
  StageTrace& to = trace->stages[gradient ? 0 : 1];
  TraceSlice encode =
      OfMessage("encode", TraceSlice::ENCODER, gradient, microbatch, at + 1, at + 3);
  encode.set_ready(at);
  from.slices.push_back(encode);
  from.slices.push_back(
      OfMessage("send host_copies", TraceSlice::ENCODER, gradient, microbatch, at + 3, at + 4));
  from.slices.back().set_wire_bytes(77);
  TraceSlice decode =
      OfMessage("decode", TraceSlice::DECODER, gradient, microbatch, at + 7, at + 9);
  decode.set_ready(at + 6);
  to.slices.push_back(decode);
}

// Returns a slice of a GPU's stream.
inline TraceSlice OfDevice(const std::string& name, uint32_t stream, int64_t begin, int64_t end) {
  TraceSlice slice = NewSlice(name, TraceSlice::DEVICE, begin, end);
  slice.set_stream(stream);
  return slice;
}

// Returns the trace, in nanoseconds. Stage 0: F0 F1 wait B0 wait B1 optimizer, which waited 1 for a
// core. Stage 1: wait F0 B0 wait F1 B1 optimizer.
inline RunTrace MadeUpTrace() {
  RunTrace trace;
  trace.run = "made-up";
  trace.schedule = "1f1b";
  trace.microbatches = 2;
  trace.cuts = {"layer1"};
  trace.steps.set_first(3);
  trace.steps.set_last(3);
  trace.stages.resize(2);
  const auto wait = [](bool gradient, uint32_t microbatch, int64_t begin, int64_t end) {
    return OfMessage("receive_wait", TraceSlice::EXECUTOR, gradient, microbatch, begin, end);
  };
  trace.stages[0].slices = {NewSlice("step", TraceSlice::EXECUTOR, 0, 100),
                            Compute("data", 0, 0, 2),
                            Compute("forward", 0, 2, 12),
                            Compute("forward", 1, 12, 22),
                            wait(true, 0, 22, 55),
                            Compute("backward", 0, 55, 65),
                            wait(true, 1, 65, 85),
                            Compute("backward", 1, 85, 95),
                            NewSlice("optimizer", TraceSlice::EXECUTOR, 95, 99)};
  trace.stages[0].slices.back().set_core_wait(1);
  trace.stages[1].slices = {NewSlice("step", TraceSlice::EXECUTOR, -5, 80),
                            wait(false, 0, -5, 22),
                            Compute("forward", 0, 22, 30),
                            Compute("forward loss", 0, 30, 32),
                            Compute("backward", 0, 32, 45),
                            Compute("forward", 1, 45, 53),
                            Compute("forward loss", 1, 53, 55),
                            Compute("backward", 1, 55, 70),
                            NewSlice("optimizer", TraceSlice::EXECUTOR, 70, 79)};
  AddMessage(false, 0, 12, &trace);
  AddMessage(false, 1, 22, &trace);
  AddMessage(true, 0, 45, &trace);
  AddMessage(true, 1, 70, &trace);
  return trace;
}

}  // namespace thinwire
