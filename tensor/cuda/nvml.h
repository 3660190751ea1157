// What only the driver's monitor (NVML) tells.
#pragma once

#include <string>

namespace thinwire {

// The fraction of recent time, in [0, 1], in which the GPU with the CUDA index `device` computed
// for anyone; negative where there is no monitor. Any thread.
double BusyFraction(int device);

// "580.65.06"; empty where there is no monitor. Any thread.
std::string DriverVersion();

}  // namespace thinwire
