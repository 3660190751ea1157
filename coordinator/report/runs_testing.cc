#include "coordinator/report/runs_testing.h"

namespace thinwire {
namespace {

constexpr uint64_t kRawBytes = 4000000;

void Fill(uint64_t epochs, double bits, DirectionRecord* record) {
  record->set_codec(bits == 32 ? "none" : "ecsq");
  record->set_parameters(record->codec());
  record->set_feedback("none");
  record->set_raw_bytes(epochs * kRawBytes);
  record->set_wire_bytes(
      static_cast<uint64_t>(static_cast<double>(epochs * kRawBytes) * bits / 32));
  record->set_wire_bits_per_element(bits);
  record->set_encode_seconds(0.01 * static_cast<double>(epochs));
  record->set_decode_seconds(0.01 * static_cast<double>(epochs));
  record->set_relative_error(bits == 32 ? 0 : 0.25);
}

}  // namespace

ReportedRun MadeUpRun(const std::string& name, uint64_t seed, const std::vector<double>& accuracies,
                      double bits) {
  ReportedRun run;
  run.dir = "runs/" + name + "-seed" + std::to_string(seed);
  run.experiment = "name: " + name + "\nseed: " + std::to_string(seed) +
                   "\nbits: " + std::to_string(bits) + "\n";
  run.summary.set_name(name);
  run.summary.set_seed(seed);
  run.summary.set_status("completed");
  run.summary.set_stages(1);
  run.summary.set_device("cpu");
  for (const double accuracy : accuracies) {
    EpochRecord* epoch = run.summary.add_epochs();
    epoch->set_epoch(static_cast<uint32_t>(run.summary.epochs_size()));
    epoch->set_seconds(10);
    epoch->mutable_train()->set_loss(1 - accuracy);
    epoch->mutable_test()->mutable_compressed()->set_accuracy(accuracy);
    epoch->mutable_test()->mutable_uncompressed()->set_accuracy(accuracy - 0.05);
    EpochBoundary* boundary = epoch->add_boundaries();
    for (EpochDirection* one : {boundary->mutable_activations(), boundary->mutable_gradients()}) {
      one->set_raw_bytes(kRawBytes);
      one->set_wire_bytes(static_cast<uint64_t>(kRawBytes * bits / 32));
    }
    run.losses.push_back({static_cast<double>(epoch->epoch()), 1 - accuracy});
  }
  BoundaryRecord* boundary = run.summary.add_boundaries();
  boundary->set_name("layer1");
  Fill(accuracies.size(), bits, boundary->mutable_activations());
  Fill(accuracies.size(), bits, boundary->mutable_gradients());
  return run;
}

}  // namespace thinwire
