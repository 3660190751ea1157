#include "backend/cuda/libraries.h"

namespace thinwire {

std::string ArithmeticLibraries() { return "the CPU's convolutions and products"; }

}  // namespace thinwire
