// Reads what only the driver's monitor (NVML) knows.
#pragma once

#include <string>

namespace thinwire {

// Returns the part of recent time, in [0, 1], in which the GPU with CUDA index `device` computed
// for anyone; negative without a monitor. Any thread.
double BusyFraction(int device);

// Returns, for example, "580.65.06"; empty without a monitor. Any thread.
std::string DriverVersion();

}  // namespace thinwire
