// Sends files to a stage and receives them: parameters, and the state of checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "grpcpp/grpcpp.h"
#include "stage_server/service_testing.h"

namespace thinwire {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class UploadsTest : public ServiceTest {
 protected:
  std::string ReadSnapshot(int file, grpc::StatusCode code) {
    grpc::ClientContext context;
    ReadSnapshotRequest request;
    *request.mutable_lease() = LeaseOf("one");
    request.set_file(static_cast<uint32_t>(file));
    auto reader = stub_->ReadSnapshot(&context, request);
    std::string bytes;
    for (FileChunk chunk; reader->Read(&chunk);) bytes += chunk.data();
    EXPECT_EQ(reader->Finish().error_code(), code);
    return bytes;
  }
  grpc::Status Restore(const Lease& lease, const StatePart& part, const std::string& file) {
    grpc::ClientContext context;
    RestoreResponse response;
    auto writer = stub_->Restore(&context, &response);
    RestoreRequest request;
    *request.mutable_lease() = lease;
    *request.mutable_part() = part;
    request.set_step(1);
    request.set_data(file);
    writer->Write(request);
    writer->WritesDone();
    return writer->Finish();
  }
  // Sends the file in pieces of 1000 bytes.
  grpc::Status Import(const Lease& lease, const std::string& file, const std::string& kept = "") {
    grpc::ClientContext context;
    ImportParametersResponse response;
    auto writer = stub_->ImportParameters(&context, &response);
    for (size_t at = 0; at < file.size(); at += 1000) {
      ImportParametersRequest request;
      if (at == 0) {
        *request.mutable_lease() = lease;
        if (!kept.empty()) request.add_kept(kept);
      }
      request.set_data(file.substr(at, 1000));
      if (!writer->Write(request)) break;
    }
    writer->WritesDone();
    return writer->Finish();
  }
};

TEST_F(UploadsTest, WhatWasExportedIsImportedAndNothingElse) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const std::string initial = Export(lease);
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  const std::string trained = Export(lease);
  ASSERT_NE(trained, initial);
  EXPECT_EQ(Import(lease, initial.substr(0, initial.size() - 1)).error_code(),
            grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Export(lease), trained);
  const grpc::Status status = Import(lease, initial);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Export(lease), initial);
  EXPECT_EQ(Import(LeaseOf("two"), initial).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(UploadsTest, AParameterThatIsSaidToBeKeptIsNotInTheFileAndStays) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const std::string initial = Export(lease);
  int steps = 0;
  ASSERT_TRUE(Train(lease, 40, &steps).ok());
  const std::string trained = Export(lease);
  Safetensors rest = *ParseSafetensors(initial);
  const StoredTensor kept = ParseSafetensors(trained)->tensors[0];
  rest.tensors.erase(rest.tensors.begin());
  std::string file;
  ASSERT_TRUE(WriteSafetensors(rest, size_t{1} << 20, [&](std::string_view piece) {
                file += piece;
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(Import(lease, file).error_message(), HasSubstr(kept.name + " is missing"));
  const grpc::Status status = Import(lease, file, kept.name);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::string now = Export(lease);
  const Safetensors after = *ParseSafetensors(now);
  EXPECT_EQ(after.tensors[0].data, kept.data);
  ASSERT_EQ(after.tensors.size(), rest.tensors.size() + 1);
  for (size_t i = 0; i < rest.tensors.size(); ++i) {
    EXPECT_EQ(after.tensors[i + 1].data, rest.tensors[i].data) << rest.tensors[i].name;
  }
}

TEST_F(UploadsTest, MoreThanTheStageHasIsNotGathered) {
  const Lease lease = LeaseOf("one");
  ASSERT_TRUE(Acquire(lease, &acquired_).ok());
  ASSERT_TRUE(Configure(lease, 0, 1, &configured_).ok());
  const grpc::Status status = Import(lease, std::string(size_t{20} << 20, 'x'));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("parameters of more than"));
}

TEST_F(UploadsTest, ReleaseEndsAnImportThatGoesSilent) {
  overrides_ = {"pipeline.cuts=[stem, layer1]", "pipeline.stages=3"};
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 1, 1, &configured_).ok());
  grpc::ClientContext context;
  ImportParametersResponse response;
  auto writer = stub_->ImportParameters(&context, &response);
  ImportParametersRequest request;
  *request.mutable_lease() = LeaseOf("one");
  // Begins a header that claims 16 MiB.
  request.set_data(std::string("\0\0\0\1\0\0\0\0", 8) + std::string(size_t{1} << 20, ' '));
  // Sends more than flow control lets through unread.
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(writer->Write(request));
  ASSERT_TRUE(Release(LeaseOf("one")).ok());
  ASSERT_TRUE(Acquire(LeaseOf("two"), &acquired_).ok());
  const grpc::Status status = Configure(LeaseOf("two"), 1, 1, &configured_);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_THAT(writer->Finish().error_code(),
              AnyOf(grpc::StatusCode::CANCELLED, grpc::StatusCode::FAILED_PRECONDITION));
}

TEST_F(UploadsTest, ImportsUnderWayAreBoundedAndOneThatDoesNotBeginIsCancelled) {
  struct Import {
    grpc::ClientContext context;
    ImportParametersResponse response;
    std::unique_ptr<grpc::ClientWriter<ImportParametersRequest>> writer;
  };
  std::vector<Import> silent(4);
  for (Import& import : silent) {
    import.writer = stub_->ImportParameters(&import.context, &import.response);
  }
  // The first calls may still be on their way.
  grpc::Status refused;
  for (int i = 0; i < 500 && refused.error_code() != grpc::StatusCode::RESOURCE_EXHAUSTED; ++i) {
    Import one;
    one.writer = stub_->ImportParameters(&one.context, &one.response);
    one.writer->WritesDone();
    refused = one.writer->Finish();
  }
  EXPECT_THAT(refused.error_message(), HasSubstr("4 calls that send files are under way"));
  for (Import& import : silent) {
    EXPECT_EQ(import.writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(UploadsTest, AStateThatWasCopiedIsReadOnceAndRestoredByWhoHoldsTheLease) {
  ASSERT_TRUE(Acquire(LeaseOf("one"), &acquired_).ok());
  ASSERT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok());
  int steps = 0;
  ASSERT_TRUE(Train(LeaseOf("one"), configured_.train_samples(), &steps).ok());
  const std::string trained = Export(LeaseOf("one"));
  grpc::ClientContext taking;
  TakeSnapshotRequest request;
  *request.mutable_lease() = LeaseOf("one");
  request.set_codec_state(true);
  TakeSnapshotResponse taken;
  ASSERT_TRUE(stub_->TakeSnapshot(&taking, request, &taken).ok());
  ASSERT_GE(taken.files_size(), 1);
  EXPECT_EQ(taken.files(0).part().tensors(), "model");
  std::vector<std::string> files;
  for (int i = 0; i < taken.files_size(); ++i) {
    files.push_back(ReadSnapshot(i, grpc::StatusCode::OK));
    EXPECT_EQ(files.back().size(), taken.files(i).bytes());
  }
  EXPECT_EQ(files[0], trained);
  ReadSnapshot(0, grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(Configure(LeaseOf("one"), 0, 1, &configured_).ok());
  ASSERT_NE(Export(LeaseOf("one")), trained);
  for (int i = 0; i < taken.files_size(); ++i) {
    const grpc::Status restored = Restore(LeaseOf("one"), taken.files(i).part(), files[i]);
    EXPECT_TRUE(restored.ok()) << restored.error_message();
  }
  EXPECT_EQ(Export(LeaseOf("one")), trained);
  Lease other = LeaseOf("one");
  other.set_secret("what nobody was told");
  EXPECT_EQ(Restore(other, taken.files(0).part(), files[0]).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  files[0].pop_back();
  EXPECT_THAT(Restore(LeaseOf("one"), taken.files(0).part(), files[0]).error_message(),
              HasSubstr("model: safetensors: the file ends 1 bytes before"));
}

}  // namespace
}  // namespace thinwire
