// Names of kernels, for people.
#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "tensor/cuda/cupti.h"

namespace thinwire {
namespace {

constexpr size_t kMost = 80;

std::string Demangled(const char* linkers) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(linkers, nullptr, nullptr, &status), &std::free);
  return status == 0 && name != nullptr ? name.get() : linkers;
}

void EraseAll(std::string_view what, std::string* from) {
  for (size_t at = 0; (at = from->find(what, at)) != std::string::npos;) {
    from->erase(at, what.size());
  }
}

// Returns the text before the list of parameters: the first bracket outside template arguments.
std::string WithoutParameters(const std::string& name) {
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}

std::string WithoutNamespaces(const std::string& name) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  std::string shorter;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, 2, "::") == 0) {
      while (!shorter.empty() && is_word(shorter.back())) shorter.pop_back();
      ++i;
    } else {
      shorter += name[i];
    }
  }
  return shorter;
}

}  // namespace

std::string ShortKernelName(const char* linkers) {
  std::string name = Demangled(linkers);
  EraseAll("(anonymous namespace)::", &name);
  name = WithoutNamespaces(WithoutParameters(name));
  constexpr std::string_view kReturned = "void ";
  if (name.compare(0, kReturned.size(), kReturned) == 0) name.erase(0, kReturned.size());
  if (name.empty()) name = linkers;
  if (name.size() > kMost) name = name.substr(0, kMost - 3) + "...";
  return name;
}

}  // namespace thinwire
