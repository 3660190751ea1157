// Makes control calls in any order, by the holder of the lease and by strangers, with whole and
// damaged requests, against one service. Callers without the lease must be refused in words that
// tell nothing, and must change nothing. The holder must be served. A run among all this must train
// to the losses that it has alone, and no call may outlive the lease.
//
// An input is a text of orders separated by blanks, such as "ao0 co0 Tw8". An order has three
// parts: a call (the letters are in control_calls_testing.cc; a capital leaves the call open), its
// caller (FuzzPeer::HowLeased), and a variant of the request. Each '~' behind it is followed by
// three bytes: two say where the request is damaged, one is written there.
#include <cstddef>
#include <cstdint>

#include "google/protobuf/stubs/logging.h"
#include "stage_server/fuzz_orders_testing.h"
#include "stage_server/fuzz_peer_testing.h"

// Turns the leak sanitizer off, which asks here. gRPC's threads run to the end and, once in
// thousands of inputs, leave 88 bytes that look like a leak. service_test is checked for leaks.
extern "C" int __lsan_is_turned_off() { return 1; }

constexpr size_t kMostOrders = 40;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool is_prepared = [] {
    google::protobuf::SetLogHandler(nullptr);
    thinwire::FuzzPeer peer;
    peer.CheckConfigurations();
    peer.Leave();
    return true;
  }();
  static_cast<void>(is_prepared);
  thinwire::FuzzPeer peer;
  thinwire::Orders orders(data, size);
  for (size_t i = 0; i < kMostOrders; ++i) {
    const auto order = orders.Next();
    if (!order) break;
    peer.Obey(*order);
  }
  peer.Leave();
  return 0;
}
