#include "wire/codec_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compress/sample_specs_testing.h"
#include "compress/spec_parameters.h"
#include "google/protobuf/descriptor.h"
#include "tensor/dtype.h"

namespace thinwire {
namespace {

using ::google::protobuf::EnumDescriptor;
using ::testing::ElementsAreArray;

CodecSpec Uniform() {
  CodecSpec spec;
  spec.kind = CodecKind::kUniform;
  spec.scope = Scope::kGroup;
  spec.group = 64;
  spec.bits = 3;
  spec.range = Range::kMinMax;
  spec.rounding = Rounding::kStochastic;
  spec.zero = Zero::kOnGrid;
  return spec;
}

CodecSpec TopK() {
  CodecSpec spec;
  spec.kind = CodecKind::kTopK;
  spec.scope = Scope::kToken;
  spec.ratio = 0.1;
  spec.count = Count::kPaper1;
  spec.pad = Pad::kExactK;
  spec.values = Values::kF16;
  return spec;
}

TEST(CodecParametersTest, EveryKindComesBackAsItWas) {
  std::vector<CodecSpec> specs = SampleSpecsOfAll();
  specs.push_back(Uniform());
  specs.push_back(TopK());
  for (const CodecSpec& spec : specs) {
    const absl::StatusOr<CodecSpec> back = FromParameters(ToParameters(spec));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(*back == spec) << spec.ToString();
  }
}

TEST(CodecParametersTest, ACastTravelsInTwoBytes) {
  CodecSpec spec;
  spec.kind = CodecKind::kFp16;
  EXPECT_EQ(ToParameters(spec).ByteSizeLong(), 2u);
}

TEST(CodecParametersTest, AParameterOfAnotherKindDoesNotTravel) {
  CodecSpec uniform = Uniform();
  uniform.ratio = 0.5;
  EXPECT_EQ(ToParameters(uniform).ratio(), 0);
}

TEST(CodecParametersTest, UnknownNumbersAreNamed) {
  CodecParameters parameters = ToParameters(Uniform());
  for (const int number : {7, 257, -1}) {
    parameters.set_rounding(static_cast<CodecParameters::Rounding>(number));
    EXPECT_EQ(FromParameters(parameters).status(),
              absl::InvalidArgumentError(
                  absl::StrCat("codec.rounding is ", number, ", want a known number")));
  }
}

TEST(CodecParametersTest, AParameterThatTheCodecDoesNotHaveIsNamed) {
  CodecParameters parameters = ToParameters(TopK());
  parameters.set_rank(4);
  EXPECT_EQ(FromParameters(parameters).status(),
            absl::InvalidArgumentError("codec.rank is 4, want none: it has no say in " +
                                       TopK().ToString()));
}

TEST(CodecParametersTest, AParameterWithoutASayBesideTheOthersIsNamed) {
  CodecSpec spec = Uniform();
  spec.range = Range::kMaxAbs;
  spec.zero = Zero::kFree;
  CodecParameters parameters = ToParameters(spec);
  parameters.set_zero(CodecParameters::ZERO_ON_GRID);
  EXPECT_EQ(FromParameters(parameters).status(),
            absl::InvalidArgumentError("codec.zero is ZERO_ON_GRID, want none: it has no say in " +
                                       spec.ToString()));
}

// Returns the names of an enum's values in boundary.proto, except the one that means "not given".
std::map<int, std::string> NamesOnTheWire(const EnumDescriptor* descriptor) {
  std::map<int, std::string> names;
  for (int i = 0; i < descriptor->value_count(); ++i) {
    const auto* value = descriptor->value(i);
    if (!absl::EndsWith(value->name(), "_UNSPECIFIED")) names[value->number()] = value->name();
  }
  return names;
}

// Returns the names of the enum `Enum` of compress/spec.h in the form of boundary.proto's `field`.
template <typename Enum>
std::map<int, std::string> NamesInCode(const std::string& field) {
  std::map<int, std::string> names;
  for (int number = 0; number <= UINT8_MAX; ++number) {
    const std::string name = Name(static_cast<Enum>(number));
    if (name != "unknown") names[number] = absl::AsciiStrToUpper(field + "_" + name);
  }
  return names;
}

TEST(CodecParametersTest, NumbersAndNamesOnTheWireAreThoseInTheCode) {
  std::set<std::string> checked;
  const auto check = [&](const std::string& field, const std::map<int, std::string>& in_code) {
    const EnumDescriptor* descriptor =
        CodecParameters::descriptor()->FindFieldByName(field)->enum_type();
    EXPECT_THAT(NamesOnTheWire(descriptor), ElementsAreArray(in_code)) << field;
    checked.insert(field);
  };
  check("kind", NamesInCode<CodecKind>("kind"));
  for (const CodecRow& row : CodecRows()) {
    const CodecSpec spec = DefaultSpec(row.value);
    VisitAllParameters(spec, [&](const char* name, const auto& value, const auto&) {
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_enum_v<T>) check(name, NamesInCode<T>(name));
    });
  }
  EXPECT_EQ(checked.size(), 16u);
  std::map<int, std::string> types;
  for (const DType type : {DType::kF32, DType::kBF16, DType::kF16}) {
    types[static_cast<int>(type)] =
        absl::AsciiStrToUpper(absl::StrCat("element_type_", Name(type)));
  }
  EXPECT_THAT(NamesOnTheWire(FrameHeader::ElementType_descriptor()), ElementsAreArray(types));
}

}  // namespace
}  // namespace thinwire
