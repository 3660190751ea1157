// What every oneDNN operation here needs: one engine, one stream, a fixed number of threads,
// scratch memory that all operations share, and errors instead of exceptions.
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

// oneDNN takes its thread count from OpenMP's setting of the calling thread: set while this lives.
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

// Memory that grows to the largest size asked for and is overwritten by the next user.
class Scratch {
 public:
  explicit Scratch(const dnnl::engine& engine) : engine_(engine) {}
  void* Get(size_t bytes);

 private:
  const dnnl::engine& engine_;
  dnnl::memory memory_;
  size_t bytes_ = 0;
};

struct OneDnn {
  explicit OneDnn(int threads);

  const int threads;
  const dnnl::engine engine;
  dnnl::stream stream;
  Scratch scratchpad;  // of the primitive that runs
  Scratch gradients;   // a weight gradient in a primitive's own layout, until it is accumulated
};

constexpr dnnl::memory::data_type OneDnnType(DType type) {
  return type == DType::kF32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

// Attributes of every primitive here: scratch memory comes from OneDnn.
dnnl::primitive_attr Attributes();

// Describes a primitive. oneDNN 2 wants `operation` as an object of its own, oneDNN 3 takes its
// parts. `forward`: for a backward primitive, the description of its forward primitive.
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
  // `arguments`: the DNNL_ARG_* that it takes, the scratchpad apart.
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

// Runs `body` with OneDnn's threads; what it throws becomes an Error that starts with `what`.
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
