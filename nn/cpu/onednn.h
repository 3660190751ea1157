// Environment of every oneDNN operation here: one engine, one stream, a fixed number of threads,
// scratch memory shared by all operations, and errors instead of exceptions.
#pragma once

#include <omp.h>

#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/error.h"

namespace thinwire::cpu {

// Sets OpenMP's thread count of the calling thread, from which oneDNN takes its own, during its
// lifetime.
class ThreadsInForce {
 public:
  explicit ThreadsInForce(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~ThreadsInForce() { omp_set_num_threads(before_); }
  ThreadsInForce(const ThreadsInForce&) = delete;
  ThreadsInForce& operator=(const ThreadsInForce&) = delete;

 private:
  const int before_;
};

// Memory that grows to the largest size asked for; its next user overwrites it.
class Scratch {
 public:
  explicit Scratch(const dnnl::engine& engine) : engine_(engine) {}
  // Returns memory of at least `bytes` bytes; null for 0 bytes if there never was any.
  void* Get(size_t bytes);

 private:
  const dnnl::engine& engine_;
  dnnl::memory memory_;
  size_t bytes_ = 0;
};

// State shared by all oneDNN operations of one Ops.
struct OneDnn {
  explicit OneDnn(int threads);

  const int threads;
  const dnnl::engine engine;
  dnnl::stream stream;
  Scratch scratchpad;  // for the primitive that runs
  Scratch gradients;   // a weight gradient in the primitive's layout, until it is added
};

constexpr dnnl::memory::data_type OneDnnType(DType type) {
  return type == DType::kF32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

// Returns the attributes of every primitive here: scratch memory comes from OneDnn.
dnnl::primitive_attr Attributes();

// Describes a primitive. oneDNN 2 wants `operation` as an object, oneDNN 3 takes its parts. For a
// backward primitive, `forward` is the description of its forward primitive.
template <typename Primitive, typename... Parts, typename... Forward>
auto Describe(const OneDnn& onednn, const std::tuple<Parts...>& operation,
              const Forward&... forward) {
  return std::apply(
      [&](const Parts&... parts) {
        using Description = typename Primitive::primitive_desc;
#if DNNL_VERSION_MAJOR < 3
        return Description(typename Primitive::desc(parts...), Attributes(), onednn.engine,
                           forward...);
#else
        return Description(onednn.engine, parts..., forward..., Attributes());
#endif
      },
      operation);
}

// A primitive with its memory objects, whose addresses are bound before each Run.
class Execution {
 public:
  // Prepares a primitive. `arguments` are the DNNL_ARG_* that it takes, except the scratchpad.
  Execution(OneDnn* onednn, const dnnl::primitive_desc& description,
            const std::vector<int>& arguments);
  void Bind(int argument, const void* data) {
    arguments_.at(argument).set_data_handle(const_cast<void*>(data));
  }
  dnnl::memory::desc layout(int argument) const { return arguments_.at(argument).get_desc(); }
  void Run();

 private:
  OneDnn* const onednn_;
  dnnl::primitive primitive_;
  size_t scratchpad_bytes_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// Runs `body` with OneDnn's threads. What it throws becomes an Error whose message begins with
// `what`.
template <typename Body>
Error Guarded(OneDnn* onednn, const char* what, const Body& body) {
  const ThreadsInForce threads(onednn->threads);
  try {
    body();
    return Error{};
  } catch (const dnnl::error& error) {
    return MakeError(absl::StatusCode::kInternal, "%s: oneDNN: %s", what, error.what());
  } catch (const std::bad_alloc&) {
    return MakeError(absl::StatusCode::kResourceExhausted, "%s: no memory", what);
  }
}

}  // namespace thinwire::cpu
