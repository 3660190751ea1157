// Gives the names and texts of errors.
#include "third_party/cuda_on_host/runtime_api.h"

namespace {

struct Text {
  cudaError_t code;
  const char* name;
  const char* text;
};

#define TEXT(code, text) \
  { code, #code, text }
constexpr Text kTexts[] = {
    TEXT(cudaSuccess, "no error"),
    TEXT(cudaErrorInvalidValue, "invalid argument"),
    TEXT(cudaErrorMemoryAllocation, "out of memory"),
    TEXT(cudaErrorInitializationError, "initialization error"),
    TEXT(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    TEXT(cudaErrorInsufficientDriver,
         "CUDA driver version is insufficient for CUDA runtime version"),
    TEXT(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    TEXT(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    TEXT(cudaErrorInvalidDevice, "invalid device ordinal"),
    TEXT(cudaErrorDeviceUninitialized, "invalid device context"),
    TEXT(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    TEXT(cudaErrorNoKernelImageForDevice,
         "no kernel image is available for execution on the device"),
    TEXT(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    TEXT(cudaErrorNotReady, "device not ready"),
    TEXT(cudaErrorHostMemoryAlreadyRegistered,
         "part or all of the requested memory range is already mapped"),
    TEXT(cudaErrorHostMemoryNotRegistered,
         "pointer does not correspond to a registered memory region"),
    TEXT(cudaErrorNotSupported, "operation not supported"),
    TEXT(cudaErrorSystemNotReady, "system not yet initialized"),
    TEXT(cudaErrorSystemDriverMismatch,
         "system has unsupported display driver / cuda driver combination"),
    TEXT(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    TEXT(cudaErrorStreamCaptureInvalidated,
         "operation failed due to a previous error during capture"),
    TEXT(cudaErrorStreamCaptureUnmatched, "capture was not initiated in this stream"),
    TEXT(cudaErrorStreamCaptureImplicit,
         "operation would make the legacy stream depend on a capturing blocking stream"),
    TEXT(cudaErrorCapturedEvent,
         "operation not permitted on an event last recorded in a capturing stream"),
    TEXT(cudaErrorStreamCaptureWrongThread,
         "attempt to terminate a thread-local capture sequence from another thread"),
};
#undef TEXT

const Text* Find(cudaError_t code) {
  for (const Text& text : kTexts) {
    if (text.code == code) return &text;
  }
  return nullptr;
}

}  // namespace

const char* cudaGetErrorName(cudaError_t code) {
  const Text* text = Find(code);
  return text == nullptr ? "unrecognized error code" : text->name;
}

const char* cudaGetErrorString(cudaError_t code) {
  const Text* text = Find(code);
  return text == nullptr ? "unrecognized error code" : text->text;
}
