// Orders of an input of the fuzz target, separated by blanks, such as "ao0 co0 Tw8".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thinwire {

// Orders that are no control calls: a link, the call of a server with the same stage, an unknown
// call, the end of the oldest open call, its cancellation, and a whole run by the holder.
constexpr char kLink = 'b', kReadState = 'o', kUnknown = 'u', kEnd = 'l', kCancel = 'h',
               kOwnRun = 'k';
constexpr char kOtherOrders[] = {kLink, kReadState, kUnknown, kEnd, kCancel, kOwnRun};

// Splits an input into orders.
class Orders {
 public:
  Orders(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  struct Damage {
    size_t at;
    char value;
  };
  struct Order {
    char call, who;
    bool stays_open;
    uint8_t variant;
    std::vector<Damage> damage;
  };

  std::optional<Order> Next() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
    if (rest_.size() < 3) return std::nullopt;
    Order order;
    order.stays_open = (rest_[0] & 0x20) == 0;
    order.call = static_cast<char>(rest_[0] | 0x20);
    order.who = rest_[1];
    order.variant = static_cast<uint8_t>(rest_[2] - '0');
    rest_.remove_prefix(3);
    while (rest_.size() >= 4 && rest_[0] == '~') {
      const auto high = static_cast<uint8_t>(rest_[1]), low = static_cast<uint8_t>(rest_[2]);
      order.damage.push_back({size_t{high} * 256 + low, rest_[3]});
      rest_.remove_prefix(4);
    }
    return order;
  }

 private:
  std::string_view rest_;
};

inline void Inflict(const std::vector<Orders::Damage>& damage, std::string* bytes) {
  for (const Orders::Damage& one : damage) {
    if (!bytes->empty()) (*bytes)[one.at % bytes->size()] = one.value;
  }
}

}  // namespace thinwire
