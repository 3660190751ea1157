#include "nn/cpu/onednn.h"

namespace thinwire::cpu {

void* Scratch::Get(size_t bytes) {
  if (bytes > bytes_) {
    const dnnl::memory::desc flat({static_cast<dnnl::memory::dim>(bytes)},
                                  dnnl::memory::data_type::u8, dnnl::memory::format_tag::a);
    memory_ = dnnl::memory();  // frees the old memory before its successor is allocated
    memory_ = dnnl::memory(flat, engine_);
    bytes_ = bytes;
  }
  return bytes_ == 0 ? nullptr : memory_.get_data_handle();
}

OneDnn::OneDnn(int threads)
    : threads(threads),
      engine(dnnl::engine::kind::cpu, 0),
      stream(engine),
      scratchpad(engine),
      gradients(engine) {}

dnnl::primitive_attr Attributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Execution::Execution(OneDnn* onednn, const dnnl::primitive_desc& description,
                     const std::vector<int>& arguments)
    : onednn_(onednn),
      primitive_(description),
      scratchpad_bytes_(description.scratchpad_desc().get_size()) {
  for (int argument : arguments) {
    const auto layout = description.query_md(dnnl::query::exec_arg_md, argument);
    arguments_.emplace(argument, dnnl::memory(layout, onednn->engine, nullptr));
  }
  arguments_.emplace(DNNL_ARG_SCRATCHPAD,
                     dnnl::memory(description.scratchpad_desc(), onednn->engine, nullptr));
}

void Execution::Run() {
  Bind(DNNL_ARG_SCRATCHPAD, onednn_->scratchpad.Get(scratchpad_bytes_));
  primitive_.execute(onednn_->stream, arguments_);
  onednn_->stream.wait();
}

}  // namespace thinwire::cpu
