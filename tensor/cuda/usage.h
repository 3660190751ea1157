// How busy a GPU is, as the driver's monitor (NVML) tells.
#pragma once

namespace thinwire {

// The fraction of recent time, in [0, 1], in which the GPU with the CUDA index `device` computed
// for anyone; negative where there is no monitor. Any thread.
double BusyFraction(int device);

}  // namespace thinwire
