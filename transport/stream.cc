#include "transport/stream.h"

#include <array>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "tensor/tensor.h"
#include "transport/sockets.h"
#include "wire/frame_checker.h"

namespace thinwire {
namespace {

constexpr absl::Duration kStopCheckEvery = absl::Milliseconds(100);

using Owner = std::shared_ptr<const void>;

// gRPC may call this on a thread of its own, after the link has been destroyed.
void ReleaseOwner(void* owner) { delete static_cast<Owner*>(owner); }

// Returns a slice that refers to the payload's bytes where they are.
grpc::Slice ToSlice(const Payload& payload) {
  return grpc::Slice(const_cast<uint8_t*>(payload.bytes.data()), payload.bytes.size(), ReleaseOwner,
                     new Owner(payload.owner));
}

grpc::ByteBuffer ToByteBuffer(const OutgoingFrame& frame) {
  const grpc::Slice prefix(frame.prefix);
  if (frame.payload.bytes.empty()) return grpc::ByteBuffer(&prefix, 1);
  const std::array<grpc::Slice, 2> slices = {prefix, ToSlice(frame.payload)};
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// First bytes of frames whose payload is in a slot of the host's memory or of the receiver's device
// (docs/wire.md); no other frame begins with them. The slot and the payload's size follow as
// little-endian 32-bit numbers, then the frame up to its payload.
constexpr char kSharedMark = 0x07;
constexpr char kDeviceMark = 0x08;
constexpr size_t kSlotHeadBytes = 1 + 4 + 4;
// Smaller payloads are as fast through a socket.
constexpr size_t kLeastSharedBytes = 16 << 10;
// Chunks that a device copies at once: the one that is awaited, and the next.
constexpr size_t kCopiesUnderWay = 2;

void AppendNumber(uint32_t number, std::string* bytes) {
  for (int shift = 0; shift < 32; shift += 8) bytes->push_back(static_cast<char>(number >> shift));
}

uint32_t NumberAt(const std::string& bytes, size_t offset) {
  uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<uint8_t>(bytes[offset + i]);
  return number;
}

std::string TextOf(const std::vector<grpc::Slice>& slices) {
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

bool IsInSlot(const std::vector<grpc::Slice>& slices) {
  if (slices.empty() || slices[0].size() == 0) return false;
  return *slices[0].begin() == kSharedMark || *slices[0].begin() == kDeviceMark;
}

// The parts of a frame whose payload is in a slot.
struct SlotFrame {
  std::string prefix;
  Payload payload;
};

std::string SlotText(char mark, uint32_t slot, size_t bytes, const std::string& frame_prefix) {
  std::string text(1, mark);
  AppendNumber(slot, &text);
  AppendNumber(static_cast<uint32_t>(bytes), &text);
  return text + frame_prefix;
}

// Returns the payload, and sets in *to where it is.
absl::StatusOr<Payload> TakePayload(const std::string& text, const LocalMemory& memory,
                                    IncomingFrame* to) {
  const uint32_t slot = NumberAt(text, 1), bytes = NumberAt(text, 5);
  if (text[0] == kDeviceMark) {
    to->place = PayloadPlace::kDevice;
    return memory.device->Take(slot, bytes);
  }
  to->place = PayloadPlace::kLocked;
  to->lock_pages = [host = memory.host, slot] { return host->LockTaken(slot); };
  return memory.host->Take(slot, bytes);
}

absl::Status TakeSlot(const std::string& text, const LocalMemory& memory, IncomingFrame* to) {
  const bool in_device = text[0] == kDeviceMark;
  const bool is_there = in_device ? memory.device != nullptr : memory.host != nullptr;
  if (!is_there || text.size() < kSlotHeadBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a frame of ", text.size(), " bytes with its payload in ",
                     in_device ? "device memory" : "shared memory", ", want ",
                     is_there ? "more than its head" : "it here, as there is no such memory"));
  }
  const auto frame = std::make_shared<SlotFrame>();
  frame->prefix = text.substr(kSlotHeadBytes);
  ASSIGN_OR_RETURN(frame->payload, TakePayload(text, memory, to));
  to->parts = {BytesOf(frame->prefix), frame->payload.bytes};
  to->owner = frame;
  to->came_by = in_device ? "a slot in device memory" : "a slot in host memory";
  return absl::OkStatus();
}

// Longest time that telling the peer why the call ends may take before the call is cancelled.
constexpr absl::Duration kMaxTelling = absl::Seconds(1);
// Longest time that a cancelled call may take to end. gRPC needs milliseconds; this only limits
// what a defect could cost.
constexpr absl::Duration kMaxEnding = absl::Seconds(10);

class StreamLink final : public Link {
 public:
  explicit StreamLink(std::shared_ptr<GrpcStream> stream) : stream_(std::move(stream)) {}
  ~StreamLink() override {
    stream_->Close(absl::CancelledError("the link was destroyed"));
    if (stream_->WaitDone(SteadyTime::Now() + kMaxTelling)) return;
    stream_->Cancel();
    if (stream_->WaitDone(SteadyTime::Now() + kMaxEnding)) return;
    // Leaks, which is better than freeing what gRPC still uses.
    new std::shared_ptr<GrpcStream>(stream_);
  }

  uint64_t Send(Message message) override { return stream_->Send(std::move(message)); }
  absl::StatusOr<Message> Receive(SteadyTime deadline) override {
    return stream_->Receive(deadline);
  }
  void Close(absl::Status reason) override { stream_->Close(reason); }
  absl::Status Flush(SteadyTime deadline) override { return stream_->Flush(deadline); }
  const Device* sends_from() const override {
    return stream_->options().copies != nullptr ? stream_->options().device : nullptr;
  }
  Way last_way() const override { return stream_->last_way(); }
  uint64_t SocketBytesAcked() const override { return stream_->SocketBytesAcked(); }

 private:
  const std::shared_ptr<GrpcStream> stream_;
};

}  // namespace

absl::Status GrpcStream::Unpack(const grpc::ByteBuffer& buffer, IncomingFrame* to) const {
  const auto slices = std::make_shared<std::vector<grpc::Slice>>();
  // Is refused later as a frame without a header.
  if (!buffer.Dump(slices.get()).ok()) return absl::OkStatus();
  if (IsInSlot(*slices)) return TakeSlot(TextOf(*slices), memory_, to);
  for (const grpc::Slice& slice : *slices) to->parts.emplace_back(slice.begin(), slice.size());
  to->owner = slices;
  return absl::OkStatus();
}

OutgoingFrame GrpcStream::FrameOf(uint64_t chunk, uint32_t payload_crc32c, Sending* sending) const {
  OutgoingFrame frame =
      ToFrame(sending->header, options_.run, options_.generation, chunk, payload_crc32c);
  sending->wire_bytes += frame.wire_bytes();
  return frame;
}

void GrpcStream::Push(grpc::ByteBuffer packed) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ending_ == Ending::kNone) outbox_.push_back(std::move(packed));
  }
  WriteNext();
}

std::optional<uint32_t> GrpcStream::Reserve(size_t bytes, SteadyTime deadline) {
  if (bytes < kLeastSharedBytes || !SharesNow()) return std::nullopt;
  return memory_.host->Reserve(bytes, deadline, [this] { return ended(); });
}

absl::StatusOr<uint8_t*> GrpcStream::PlaceFor(size_t bytes, SteadyTime deadline,
                                              DeviceChunk* chunk) {
  if (bytes >= kLeastSharedBytes && SharesNow() && device_slots_ != nullptr) {
    if (const auto room = device_slots_->Reserve(bytes)) {
      chunk->place = PayloadPlace::kDevice;
      chunk->slot = room->slot;
      return room->memory;
    }
  }
  if (const std::optional<uint32_t> slot = Reserve(bytes, deadline)) {
    if (uint8_t* const memory = memory_.host->Locked(*slot)) {
      chunk->place = PayloadPlace::kLocked;
      chunk->slot = *slot;
      return memory;
    }
    memory_.host->Release(*slot);
  }
  ASSIGN_OR_RETURN(auto buffer, Buffer::Allocate(options_.device->host(), bytes));
  auto* const memory = static_cast<uint8_t*>(buffer->data());
  chunk->on_host = {std::move(buffer), {memory, bytes}};
  return memory;
}

void GrpcStream::SendSlot(char mark, uint32_t slot, uint64_t chunk, uint32_t payload_crc32c,
                          Sending* sending) {
  const OutgoingFrame frame = FrameOf(chunk, payload_crc32c, sending);
  const grpc::Slice slice(SlotText(mark, slot, frame.payload.bytes.size(), frame.prefix));
  Push(grpc::ByteBuffer(&slice, 1));
}

void GrpcStream::SendChunk(const Payload& chunk_bytes, uint64_t chunk,
                           std::optional<uint32_t> crc32c, Sending* sending) {
  const ByteSpan bytes = chunk_bytes.bytes;
  if (const std::optional<uint32_t> slot = Reserve(bytes.size(), sending->room_deadline)) {
    sending->Take(Way::kHostCopies);
    return SendSlot(kSharedMark, *slot, chunk, memory_.host->Put(*slot, bytes), sending);
  }
  if (chunk == 0 || bytes.size() >= kLeastSharedBytes) sending->Take(Way::kSocket);
  if (!crc32c) crc32c = Crc32c(bytes.data(), bytes.size());
  OutgoingFrame frame = FrameOf(chunk, *crc32c, sending);
  frame.payload = chunk_bytes;
  Push(ToByteBuffer(frame));
}

// Sends chunk after chunk: while one is copied and summed, the peer reads the one before it.
void GrpcStream::SendFromHost(const Payload& payload, Sending* sending) {
  for (uint64_t i = 0; i < NumChunks(payload.bytes.size()); ++i) {
    SendChunk({payload.owner, ChunkOf(sending->header, i)}, i, std::nullopt, sending);
  }
}

absl::StatusOr<CopyQueue*> GrpcStream::Copies() {
  if (copies_ == nullptr) {
    CopyQueue* made = nullptr;
    RETURN_IF_ERROR(ToStatus(options_.copies->NewQueue(&made)));
    copies_.reset(made);
  }
  return copies_.get();
}

absl::Status GrpcStream::Submit(ByteSpan from, CopyQueue* queue, DeviceChunk* chunk,
                                SteadyTime deadline) {
  ASSIGN_OR_RETURN(uint8_t* const to, PlaceFor(from.size(), deadline, chunk));
  return ToStatus(chunk->place == PayloadPlace::kDevice
                      ? queue->SubmitToShared(to, from.data(), from.size())
                      : queue->SubmitToHost(to, from.data(), from.size()));
}

void GrpcStream::SendCopied(const DeviceChunk& chunk, uint64_t index, Sending* sending) {
  switch (chunk.place) {
    case PayloadPlace::kDevice:
      sending->Take(Way::kDeviceSlots);
      return SendSlot(kDeviceMark, chunk.slot, index, chunk.crc32c, sending);
    case PayloadPlace::kLocked:
      sending->Take(Way::kDeviceCopies);
      return SendSlot(kSharedMark, chunk.slot, index, chunk.crc32c, sending);
    case PayloadPlace::kHost:
      return SendChunk(chunk.on_host, index, chunk.crc32c, sending);
  }
}

// The next chunk is copied while the current one is sent. The payload's owner is released with its
// last copy, before that is sent.
absl::Status GrpcStream::SendFromDevice(Payload payload, Sending* sending) {
  const uint64_t chunks = NumChunks(payload.bytes.size());
  ASSIGN_OR_RETURN(CopyQueue* const queue, Copies());
  std::deque<DeviceChunk> submitted;  // not awaited
  const absl::Cleanup await_rest = [&submitted, queue] {
    for (DeviceChunk& chunk : submitted) (void)queue->Await(&chunk.crc32c);
  };
  for (uint64_t i = 0, next = 0; i < chunks; ++i) {
    for (; submitted.size() < kCopiesUnderWay && next < chunks; ++next) {
      DeviceChunk chunk;
      RETURN_IF_ERROR(
          Submit(ChunkOf(sending->header, next), queue, &chunk, sending->room_deadline));
      submitted.push_back(std::move(chunk));
    }
    DeviceChunk chunk = std::move(submitted.front());
    submitted.pop_front();
    RETURN_IF_ERROR(ToStatus(queue->Await(&chunk.crc32c)));
    if (i + 1 == chunks) payload.owner = nullptr;
    SendCopied(chunk, i, sending);
  }
  return absl::OkStatus();
}

uint64_t GrpcStream::Send(Message message) {
  Sending sending;
  sending.room_deadline = SteadyTime::Now() + options_.room_patience;
  Payload payload = std::move(message.payload);
  sending.header = std::move(message);
  sending.header.payload = {nullptr, payload.bytes};
  absl::Status sent;
  if (payload.device != nullptr && !payload.bytes.empty()) {
    sent = SendFromDevice(std::move(payload), &sending);
  } else {
    SendFromHost(payload, &sending);
  }
  if (!sent.ok()) {
    Close(Annotated(sent, LinkAndPeer(options_)));
  }
  last_way_ = sending.way;
  return sending.wire_bytes;
}

bool GrpcStream::SharesNow() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return shares_ && ending_ == Ending::kNone;
}

absl::StatusOr<Message> GrpcStream::Receive(SteadyTime deadline) {
  absl::StatusOr<Message> message = inbox_.Receive(deadline, Waiting());
  if (!message.ok() && !absl::IsDeadlineExceeded(message.status())) {
    End(Ending::kPeerRefused, message.status());
  }
  return message;
}

// A cancelled call tells its peer no reason, so only Cancelled cancels.
void GrpcStream::Close(const absl::Status& reason) {
  inbox_.Close(reason);
  End(absl::IsCancelled(reason) ? Ending::kClosed : Ending::kPeerRefused, reason);
}

void GrpcStream::Cancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (calls_ != nullptr) calls_->Cancel();
}

absl::Status GrpcStream::Flush(SteadyTime deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool settled = changed_.wait_until(lock, deadline.chrono(), [this] {
    return ending_ != Ending::kNone || (outbox_.empty() && !writing_);
  });
  if (ending_ == Ending::kPeerEnded) {
    return absl::UnavailableError(
        absl::StrCat(LinkAndPeer(options_), ": the peer ended the stream: ", reason_.ToString()));
  }
  if (ending_ != Ending::kNone) return reason_;
  if (settled) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat(
      LinkName(options_), ", to ", options_.peer, ": ", outbox_.size() + (writing_ ? 1 : 0),
      " frames are not sent by the deadline", attached_ ? "" : "; the peer has not connected"));
}

uint64_t GrpcStream::SocketBytesAcked() const {
  std::string address;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    address = peer_address_;
  }
  return TcpBytesAcked(address);
}

bool GrpcStream::ended() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ending_ != Ending::kNone;
}

absl::Status GrpcStream::WaitAccepted(SteadyTime deadline,
                                      const std::function<absl::Status()>& stopped) {
  const auto is_settled = [this] { return accepted_ || calls_ == nullptr; };
  std::unique_lock<std::mutex> lock(mutex_);
  while (!is_settled() && SteadyTime::Now() < deadline) {
    RETURN_IF_ERROR(stopped());
    const SteadyTime next_check = std::min(deadline, SteadyTime::Now() + kStopCheckEvery);
    changed_.wait_until(lock, next_check.chrono(), is_settled);
  }
  if (calls_ == nullptr) return reason_;
  if (accepted_) return absl::OkStatus();
  return absl::UnavailableError("not reached by the deadline");
}

bool GrpcStream::WaitDone(SteadyTime deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, deadline.chrono(), [this] { return calls_ == nullptr; });
}

bool GrpcStream::attached() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return attached_;
}

bool GrpcStream::Attach(StreamCalls* calls, LocalMemory memory) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (attached_ || ending_ != Ending::kNone) return false;
    attached_ = true;
    calls_ = calls;
    memory_ = std::move(memory);
  }
  calls->StartRead(&read_buffer_);
  WriteNext();
  return true;
}

void GrpcStream::OnAccepted(bool shares, const std::string& device_ticket) {
  std::shared_ptr<SharedMemory> host;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (shares) host = memory_.host;
  }
  if (host != nullptr) device_slots_ = OpenDeviceSlots(device_ticket, options_, host);
  const std::lock_guard<std::mutex> lock(mutex_);
  accepted_ = true;
  shares_ = host != nullptr;
  peer_address_ = calls_->PeerAddress();
  changed_.notify_all();
}

void GrpcStream::OnReadDone(bool ok) {
  StreamCalls* calls;
  bool ending;
  grpc::ByteBuffer received;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls = calls_;
    ending = ending_ != Ending::kNone;
    received.Swap(&read_buffer_);
  }
  if (!ok) {
    if (!calls->status_follows()) inbox_.PeerIsGone("closed the stream");
    return End(Ending::kPeerEnded, absl::UnavailableError("the peer ended the stream"));
  }
  const absl::Status taken = ending ? absl::OkStatus() : Take(received);
  if (!taken.ok()) End(Ending::kPeerRefused, taken);
  // Reads on even after an error, as gRPC ends a call only when nothing is left unread.
  calls->StartRead(&read_buffer_);
}

absl::Status GrpcStream::Take(const grpc::ByteBuffer& received) {
  IncomingFrame frame;
  const absl::Status unpacked = Unpack(received, &frame);
  if (unpacked.ok()) return inbox_.Push(frame);
  const absl::Status refused = Annotated(unpacked, LinkAndPeer(options_));
  inbox_.End(refused);
  return refused;
}

void GrpcStream::OnWriteDone(bool ok) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    writing_ = false;
    write_buffer_.Clear();
    changed_.notify_all();
  }
  if (!ok) End(Ending::kPeerEnded, absl::UnavailableError("the peer takes no more frames"));
  WriteNext();
  FinishIfIdle();
}

void GrpcStream::OnDone(const absl::Status& peer_status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  inbox_.PeerIsGone(absl::StrCat("ended the stream: ", peer_status.ToString()));
  if (ending_ == Ending::kPeerEnded) reason_ = peer_status;
  calls_ = nullptr;
  changed_.notify_all();
}

void GrpcStream::End(Ending ending, const absl::Status& reason) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ending_ == Ending::kNone) {
      ending_ = ending;
      reason_ = reason;
    }
    outbox_.clear();
    changed_.notify_all();
    // A call that is telling its peer why it ends must not be cancelled.
    const bool is_told = ending_ == Ending::kPeerRefused && finishing_;
    const bool cancel =
        (ending == Ending::kClosed && !is_told) || (ending == Ending::kPeerRefused && writing_);
    if (cancel && calls_ != nullptr) calls_->Cancel();
  }
  FinishIfIdle();
}

// Starts the next write unless one is under way: gRPC takes one at a time, and OnWriteDone comes
// back here.
void GrpcStream::WriteNext() {
  StreamCalls* calls;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (calls_ == nullptr || ending_ != Ending::kNone || writing_ || outbox_.empty()) return;
    writing_ = true;
    write_buffer_.Swap(&outbox_.front());
    outbox_.pop_front();
    calls = calls_;
  }
  calls->StartWrite(&write_buffer_);
}

// Finishes a call that is ending, once no write is under way.
void GrpcStream::FinishIfIdle() {
  StreamCalls* calls;
  Ending ending;
  absl::Status reason;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (calls_ == nullptr || ending_ == Ending::kNone || writing_ || finishing_) return;
    finishing_ = true;
    calls = calls_;
    ending = ending_;
    reason = reason_;
  }
  calls->Finish(ending, reason);
}

std::string GrpcStream::Waiting() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return attached_ ? "" : "the peer has not connected";
}

std::unique_ptr<Link> NewStreamLink(std::shared_ptr<GrpcStream> stream) {
  return std::make_unique<StreamLink>(std::move(stream));
}

}  // namespace thinwire
