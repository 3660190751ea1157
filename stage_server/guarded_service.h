// The control service as the network sees it. It checks that a caller is a coordinator and passes
// the call on to the service behind it. Calls not listed here are unimplemented.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/stage.grpc.pb.h"
#include "transport/status.h"

namespace thinwire {

class GuardedService final : public Stage::Service {
 public:
  // Returns OK if the caller may call; otherwise the error that answers the call. Any thread.
  using Guard = std::function<absl::Status(const grpc::ServerContextBase&)>;

  // Makes a service in front of `service`, which outlives it.
  GuardedService(Stage::Service* service, Guard guard)
      : service_(*service), guard_(std::move(guard)) {}

// Defines one call that the guard checks and `service_` answers.
#define THINWIRE_CALL(Name, In, Out)                                           \
  grpc::Status Name(grpc::ServerContext* context, In* in, Out* out) override { \
    const grpc::Status refusal = Refusal(*context);                            \
    return refusal.ok() ? service_.Name(context, in, out) : refusal;           \
  }
  THINWIRE_CALL(Acquire, const AcquireRequest, AcquireResponse)
  THINWIRE_CALL(Renew, const RenewRequest, RenewResponse)
  THINWIRE_CALL(Configure, const ConfigureRequest, ConfigureResponse)
  THINWIRE_CALL(Connect, const ConnectRequest, ConnectResponse)
  THINWIRE_CALL(Train, const TrainRequest, grpc::ServerWriter<StageEvent>)
  THINWIRE_CALL(EndTraining, const EndTrainingRequest, EndTrainingResponse)
  THINWIRE_CALL(TakeSnapshot, const TakeSnapshotRequest, TakeSnapshotResponse)
  THINWIRE_CALL(ReadSnapshot, const ReadSnapshotRequest, grpc::ServerWriter<FileChunk>)
  THINWIRE_CALL(Restore, grpc::ServerReader<RestoreRequest>, RestoreResponse)
  THINWIRE_CALL(Evaluate, const EvaluateRequest, grpc::ServerWriter<StageEvent>)
  THINWIRE_CALL(ExportParameters, const ExportParametersRequest, grpc::ServerWriter<FileChunk>)
  THINWIRE_CALL(ImportParameters, grpc::ServerReader<ImportParametersRequest>,
                ImportParametersResponse)
  THINWIRE_CALL(Gradients, const GradientsRequest, grpc::ServerWriter<StageEvent>)
  THINWIRE_CALL(Generate, const GenerateRequest, GenerateResponse)
  THINWIRE_CALL(ExportCapture, const ExportCaptureRequest, grpc::ServerWriter<FileChunk>)
  THINWIRE_CALL(AnswerLink, const AnswerLinkRequest, grpc::ServerWriter<AnswerLinkResponse>)
  THINWIRE_CALL(MeasureLink, const MeasureLinkRequest, MeasureLinkResponse)
  THINWIRE_CALL(Release, const ReleaseRequest, ReleaseResponse)
#undef THINWIRE_CALL

 private:
  grpc::Status Refusal(const grpc::ServerContextBase& context) const {
    return ToGrpcStatus(guard_(context));
  }

  Stage::Service& service_;
  const Guard guard_;
};

}  // namespace thinwire
