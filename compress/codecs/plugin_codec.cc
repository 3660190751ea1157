#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compress/codecs/plugin.h"
#include "compress/codecs/stack.h"
#include "compress/layout.h"

namespace thinwire {
namespace {

// Buffer in which a library writes what is wrong.
class ErrorText {
 public:
  thinwire_error_v1 to() { return {text_, sizeof(text_)}; }
  absl::Status Status(const Plugin& plugin) {
    text_[sizeof(text_) - 1] = '\0';
    return absl::InvalidArgumentError(absl::StrCat(plugin.table->name, ": ", text_));
  }

 private:
  char text_[256] = {};
};

thinwire_shape_v1 ShapeOf(const Shape& shape) { return {shape.begin(), shape.rank()}; }

// Returns a pointer that is never null: C libraries may pass it to memcpy, which requires one even
// for no bytes.
template <typename T>
T* NotNull(T* memory) {
  alignas(16) static uint8_t nothing[16];
  return memory != nullptr ? memory : reinterpret_cast<T*>(nothing);
}

bool IsHostF32(const Tensor& x) { return x.dtype() == DType::kF32 && x.device()->is_host(); }

class PluginCodec final : public Codec {
 public:
  PluginCodec(const CodecSpec& spec, const Plugin& plugin, CodecKernels* kernels)
      : Codec(spec), plugin_(plugin), kernels_(kernels) {}

  size_t MaxPayloadBytes(const Shape& shape, DType /*dtype*/) const override {
    const thinwire_shape_v1 dims = ShapeOf(shape);
    return plugin_.table->bound(plugin_.codec, &dims);
  }

  absl::StatusOr<size_t> Encode(const Tensor& x, const MessageContext& context,
                                absl::Span<uint8_t> payload) const override {
    const size_t bound = MaxPayloadBytes(x.shape(), x.dtype());
    if (payload.size() < bound) {
      return absl::InvalidArgumentError(absl::StrCat(plugin_.table->name, ": payload memory of ",
                                                     payload.size(), " bytes, want ", bound));
    }
    std::shared_ptr<Buffer> memory;
    ASSIGN_OR_RETURN(const float* values, HostFloats(x, &memory));
    const thinwire_shape_v1 dims = ShapeOf(x.shape());
    size_t bytes = 0;
    ErrorText error;
    if (plugin_.table->encode(plugin_.codec, NotNull(values), &dims, context.random_key,
                              NotNull(payload.data()), bound, &bytes, error.to()) != 0) {
      return error.Status(plugin_);
    }
    if (bytes > bound) {
      return absl::InternalError(absl::StrCat(plugin_.table->name, ": says that its payload has ",
                                              bytes, " bytes, its bound is ", bound));
    }
    return bytes;
  }

  absl::Status Decode(absl::Span<const uint8_t> payload, const MessageContext& /*context*/,
                      Tensor* x) const override {
    const bool in_place = IsHostF32(*x);
    const size_t float_bytes = CastPayloadBytes(DType::kF32, x->elements());
    std::shared_ptr<Buffer> memory;
    if (!in_place) {
      ASSIGN_OR_RETURN(memory, Buffer::Allocate(x->device()->host(), float_bytes));
    }
    void* to = in_place ? x->data() : memory->data();
    const thinwire_shape_v1 dims = ShapeOf(x->shape());
    ErrorText error;
    if (plugin_.table->decode(plugin_.codec, NotNull(payload.data()), payload.size(), &dims,
                              NotNull(static_cast<float*>(to)), error.to()) != 0) {
      return error.Status(plugin_);
    }
    if (in_place) return absl::OkStatus();
    return ToStatus(
        kernels_->CastFrom({static_cast<const uint8_t*>(to), float_bytes}, DType::kF32, x->view()));
  }

 private:
  // Returns the values of x in host memory: x's own, or a copy in *memory.
  absl::StatusOr<const float*> HostFloats(const Tensor& x, std::shared_ptr<Buffer>* memory) const {
    if (IsHostF32(x)) return static_cast<const float*>(x.data());
    size_t bytes = CastPayloadBytes(DType::kF32, x.elements());
    ASSIGN_OR_RETURN(*memory, Buffer::Allocate(x.device()->host(), bytes));
    const PayloadBuffer copy = {static_cast<uint8_t*>((*memory)->data()), bytes, &bytes};
    RETURN_IF_ERROR(ToStatus(kernels_->CastTo(DType::kF32, x.view(), copy)));
    return static_cast<const float*>((*memory)->data());
  }

  const Plugin& plugin_;
  CodecKernels* kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Codec>> NewPluginCodec(const CodecSpec& spec,
                                                      CodecKernels* kernels) {
  const Plugin* plugin = FindPlugin(spec.plugin);
  if (plugin == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("plugin: no codec with digest ", spec.plugin,
                     " in this process, want one that was loaded"));
  }
  return std::make_unique<PluginCodec>(spec, *plugin, kernels);
}

}  // namespace thinwire
