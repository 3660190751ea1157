#include "stage_server/raw_call_testing.h"

#include "absl/time/clock.h"

namespace thinwire {

RawCall::RawCall(grpc::GenericStub* stub, const std::string& method, const Metadata& metadata,
                 absl::Duration patience) {
  for (const auto& [name, value] : metadata) context_.AddMetadata(name, value);
  context_.set_deadline(absl::ToChronoTime(absl::Now() + patience));
  stream_ = stub->PrepareCall(&context_, method, &queue_);
  stream_->StartCall(nullptr);
  Await();
}

RawCall::~RawCall() {
  if (!status_) {
    Cancel();
    Finish();
  }
  queue_.Shutdown();
  Await();
}

bool RawCall::Await() {
  void* tag = nullptr;
  bool went_well = false;
  return queue_.Next(&tag, &went_well) && went_well;
}

bool RawCall::Write(std::string_view message) {
  const grpc::Slice slice(message.data(), message.size());
  stream_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  return Await();
}

bool RawCall::WritesDone() {
  stream_->WritesDone(nullptr);
  return Await();
}

std::optional<std::string> RawCall::Read() {
  grpc::ByteBuffer message;
  stream_->Read(&message, nullptr);
  if (!Await()) return std::nullopt;
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return std::nullopt;
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

const grpc::Status& RawCall::Finish() {
  if (status_) return *status_;
  while (Read()) continue;
  status_.emplace();
  stream_->Finish(&*status_, nullptr);
  Await();
  return *status_;
}

}  // namespace thinwire
