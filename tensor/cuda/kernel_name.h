// Names of kernels, for people.
#pragma once

#include <string>

namespace thinwire {

// Shortens a linker's name to the kernel's own and its template arguments, all without namespaces:
// "Softmax<float, 4>" for void nn::(anonymous namespace)::Softmax<float, 4>(float const*). What is
// longer than 80 characters ends with "...".
std::string ShortKernelName(const char* linkers);

}  // namespace thinwire
