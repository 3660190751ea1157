#include "coordinator/fleet/fake_stage_testing.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/build_info.h"
#include "base/steady_time.h"

namespace thinwire {

FakeStage::FakeStage() {
  build.set_commit("abc");
  build.set_build_id(BuildId());
  configured.set_parameters(10);
  configured.set_train_samples(4);
  configured.set_test_samples(2);
  configured.mutable_device()->set_name("cpu");
  train = [](const TrainRequest&, grpc::ServerContext*, Writer*) { return grpc::Status::OK; };
  evaluate = [](const EvaluateRequest&, grpc::ServerContext*, Writer*) { return grpc::Status::OK; };
  end_training = [](const EndTrainingRequest&, EndTrainingResponse*) {
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  };
  fetch_state = [](const FetchStateRequest&) {
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  };
  generate = [](const GenerateRequest&, GenerateResponse*) { return grpc::Status::OK; };
  acquire = renew = [] { return grpc::Status::OK; };
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

FakeStage::~FakeStage() { server_->Shutdown(std::chrono::system_clock::now()); }

std::vector<std::string> FakeStage::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

bool FakeStage::released() const {
  absl::MutexLock lock(&mutex_);
  return std::count(calls_.begin(), calls_.end(), "Release") > 0;
}

void FakeStage::Note(std::string call) {
  absl::MutexLock lock(&mutex_);
  calls_.push_back(std::move(call));
}

grpc::Status FakeStage::Hang(grpc::ServerContext* context) {
  while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
  return grpc::Status(grpc::StatusCode::CANCELLED, "cancelled");
}

Lease FakeStage::lease() const {
  absl::MutexLock lock(&mutex_);
  return lease_;
}

grpc::Status FakeStage::Acquire(grpc::ServerContext*, const AcquireRequest* request,
                                AcquireResponse* response) {
  Note("Acquire");
  {
    absl::MutexLock lock(&mutex_);
    lease_ = request->lease();
  }
  response->set_cores(4);
  *response->mutable_build() = build;
  response->set_metrics_address(metrics_address);
  return acquire();
}

grpc::Status FakeStage::Renew(grpc::ServerContext* context, const RenewRequest* request,
                              RenewResponse* response) {
  response->set_ends(ends);
  response->set_advances(advances);
  response->set_clock(clock);
  response->set_steady_nanoseconds(SteadyTime::Now().nanoseconds() + clock_offset);
  run_advances = request->advances();
  renew_seconds = absl::ToDoubleSeconds(absl::FromChrono(context->deadline()) - absl::Now());
  return renew();
}

grpc::Status FakeStage::Configure(grpc::ServerContext*, const ConfigureRequest* request,
                                  ConfigureResponse* response) {
  Note(absl::StrCat("Configure stage ", request->stage(), " threads ", request->threads()));
  if (request->has_trace()) {
    Note(absl::StrCat("trace ", request->trace().first(), " to ", request->trace().last()));
  }
  if (request->generates()) Note("generates");
  *response = configured;
  return grpc::Status::OK;
}

grpc::Status FakeStage::Connect(grpc::ServerContext*, const ConnectRequest* request,
                                ConnectResponse*) {
  Note(absl::StrCat("Connect ", absl::StrJoin(request->downstream(), " ")));
  return grpc::Status::OK;
}

grpc::Status FakeStage::Train(grpc::ServerContext* context, const TrainRequest* request,
                              Writer* writer) {
  Note(absl::StrCat("Train ", request->epoch()));
  return train(*request, context, writer);
}

grpc::Status FakeStage::EndTraining(grpc::ServerContext*, const EndTrainingRequest* request,
                                    EndTrainingResponse* response) {
  Note(request->has_last_step() ? absl::StrCat("EndTraining ", request->last_step())
                                : "EndTraining");
  return end_training(*request, response);
}

grpc::Status FakeStage::Evaluate(grpc::ServerContext* context, const EvaluateRequest* request,
                                 Writer* writer) {
  std::string call = absl::StrCat("Evaluate ", request->epoch());
  if (request->compressed()) call += " compressed";
  if (request->recalibration_samples() > 0) {
    absl::StrAppend(&call, " recalibrated on ", request->recalibration_samples());
  }
  Note(call);
  return evaluate(*request, context, writer);
}

grpc::Status FakeStage::ExportParameters(grpc::ServerContext*,
                                         const ExportParametersRequest* request,
                                         grpc::ServerWriter<FileChunk>* writer) {
  const bool is_frozen = request->which() == ExportParametersRequest::FROZEN;
  Note(is_frozen ? "ExportParameters frozen" : "ExportParameters");
  for (char byte : is_frozen ? frozen : exported) {  // in the smallest pieces
    FileChunk chunk;
    chunk.set_data(std::string(1, byte));
    writer->Write(chunk);
  }
  return grpc::Status::OK;
}

grpc::Status FakeStage::ImportParameters(grpc::ServerContext*,
                                         grpc::ServerReader<ImportParametersRequest>* reader,
                                         ImportParametersResponse*) {
  Note("ImportParameters");
  std::string file;
  std::vector<std::string> kept;
  for (ImportParametersRequest request; reader->Read(&request);) {
    file += request.data();
    kept.insert(kept.end(), request.kept().begin(), request.kept().end());
  }
  absl::MutexLock lock(&mutex_);
  imported_ = std::move(file);
  kept_ = std::move(kept);
  return grpc::Status::OK;
}

std::string FakeStage::imported() const {
  absl::MutexLock lock(&mutex_);
  return imported_;
}

std::vector<std::string> FakeStage::kept() const {
  absl::MutexLock lock(&mutex_);
  return kept_;
}

grpc::Status FakeStage::ListInitial(grpc::ServerContext*, const ListInitialRequest*,
                                    ListInitialResponse* response) {
  Note("ListInitial");
  *response = initial;
  return grpc::Status::OK;
}

grpc::Status FakeStage::ReadInitial(grpc::ServerContext*, const ReadInitialRequest* request,
                                    ReadInitialResponse* response) {
  Note("ReadInitial");
  for (const auto& tensor : request->tensors()) response->add_sha256(digest(tensor.source()));
  absl::MutexLock lock(&mutex_);
  read_initial_ = *request;
  return grpc::Status::OK;
}

ReadInitialRequest FakeStage::read_initial() const {
  absl::MutexLock lock(&mutex_);
  return read_initial_;
}

std::vector<std::string> FakeStage::left_out() const {
  absl::MutexLock lock(&mutex_);
  return left_out_;
}

grpc::Status FakeStage::TakeSnapshot(grpc::ServerContext*, const TakeSnapshotRequest* request,
                                     TakeSnapshotResponse* response) {
  {
    absl::MutexLock lock(&mutex_);
    left_out_ = {request->left_out().begin(), request->left_out().end()};
  }
  Note(request->codec_state() ? "TakeSnapshot with codec state" : "TakeSnapshot");
  for (const auto& [part, file] : state) {
    *response->add_files()->mutable_part() = part;
    response->mutable_files()->rbegin()->set_bytes(file.size());
  }
  return grpc::Status::OK;
}

grpc::Status FakeStage::ReadSnapshot(grpc::ServerContext*, const ReadSnapshotRequest* request,
                                     grpc::ServerWriter<FileChunk>* writer) {
  FileChunk chunk;
  chunk.set_data(state[request->file()].second);
  writer->Write(chunk);
  return grpc::Status::OK;
}

grpc::Status FakeStage::Restore(grpc::ServerContext*, grpc::ServerReader<RestoreRequest>* reader,
                                RestoreResponse*) {
  Note("Restore");
  std::pair<StatePart, std::string> restored;
  for (RestoreRequest request; reader->Read(&request);) {
    restored.second += request.data();
    if (!request.has_part()) continue;
    restored.first = request.part();
    absl::MutexLock lock(&mutex_);
    if (request.part().tensors() == "model") kept_ = {request.kept().begin(), request.kept().end()};
    restored_step_ = request.step();
  }
  absl::MutexLock lock(&mutex_);
  restored_.push_back(std::move(restored));
  return grpc::Status::OK;
}

grpc::Status FakeStage::FetchState(grpc::ServerContext*, const FetchStateRequest* request,
                                   FetchStateResponse*) {
  Note(absl::StrCat("FetchState ", request->step(), request->in_background() ? " meanwhile" : ""));
  return fetch_state(*request);
}

std::vector<std::pair<StatePart, std::string>> FakeStage::restored() const {
  absl::MutexLock lock(&mutex_);
  return restored_;
}

uint64_t FakeStage::restored_step() const {
  absl::MutexLock lock(&mutex_);
  return restored_step_;
}

grpc::Status FakeStage::Gradients(grpc::ServerContext*, const GradientsRequest* request,
                                  Writer* writer) {
  Note(absl::StrCat("Gradients ", request->batch()));
  StageEvent event;
  event.mutable_gradients()->set_data(gradients);
  writer->Write(event);
  return grpc::Status::OK;
}

grpc::Status FakeStage::Generate(grpc::ServerContext*, const GenerateRequest* request,
                                 GenerateResponse* response) {
  Note(absl::StrCat("Generate ", request->step()));
  return generate(*request, response);
}

grpc::Status FakeStage::ExportCapture(grpc::ServerContext*, const ExportCaptureRequest* request,
                                      grpc::ServerWriter<FileChunk>* writer) {
  Note(absl::StrCat("ExportCapture ", request->step()));
  FileChunk chunk;
  chunk.set_data(captured);
  writer->Write(chunk);
  return grpc::Status::OK;
}

grpc::Status FakeStage::Release(grpc::ServerContext*, const ReleaseRequest*, ReleaseResponse*) {
  Note("Release");
  return grpc::Status::OK;
}

}  // namespace thinwire
