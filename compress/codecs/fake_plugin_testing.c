/* A codec plug-in for tests: sends fp32 as it is, and misbehaves when it is told to. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compress/codec_plugin.h"

#ifndef FAKE_ABI
#define FAKE_ABI THINWIRE_CODEC_ABI
#endif
#ifndef FAKE_NAME
#define FAKE_NAME "fake"
#endif

typedef struct {
  int longer_than_bound, leaves_the_last, trusts_lengths, hides_nan;
} fake;

static size_t count(const thinwire_shape_v1* shape) {
  size_t n = 1;
  for (int32_t i = 0; i < shape->rank; ++i) n *= (size_t)shape->dims[i];
  return n;
}

static int is(const char* json, const char* mischief) {
  char wanted[64];
  snprintf(wanted, sizeof(wanted), "\"mischief\":\"%s\"", mischief);
  return strstr(json, wanted) != NULL;
}

static void* create(const char* json, thinwire_error_v1 error) {
  static fake made[16];
  static int used = 0;
  if (is(json, "refuse")) {
    snprintf(error.text, error.bytes, "mischief is refuse, want another");
    return NULL;
  }
  fake* f = &made[used++ % 16];
  f->longer_than_bound = is(json, "longer_than_bound");
  f->leaves_the_last = is(json, "leaves_the_last");
  f->trusts_lengths = is(json, "trusts_lengths");
  f->hides_nan = is(json, "hides_nan");
  return f;
}

static void destroy(void* codec) { (void)codec; }

static size_t bound(const void* codec, const thinwire_shape_v1* shape) {
  (void)codec;
  return 4 * count(shape);
}

static int encode(const void* codec, const float* values, const thinwire_shape_v1* shape,
                  uint64_t random_key, uint8_t* payload, size_t capacity, size_t* bytes,
                  thinwire_error_v1 error) {
  const fake* f = codec;
  const size_t n = count(shape);
  (void)random_key;
  (void)capacity;
  for (size_t i = 0; i < n; ++i) {
    if (!isfinite(values[i]) && !f->hides_nan) {
      snprintf(error.text, error.bytes, "value %zu is not finite", i);
      return 1;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    const float value = isfinite(values[i]) ? values[i] : 0;
    memcpy(payload + 4 * i, &value, 4);
  }
  *bytes = 4 * n + (f->longer_than_bound ? 1 : 0);
  return 0;
}

static int decode(const void* codec, const uint8_t* payload, size_t bytes,
                  const thinwire_shape_v1* shape, float* values, thinwire_error_v1 error) {
  const fake* f = codec;
  const size_t n = count(shape);
  if (f->trusts_lengths) {
    memset(values, 0, 4 * n);
    memcpy(values, payload, bytes < 4 * n ? bytes : 4 * n);
    return 0;
  }
  if (bytes != 4 * n) {
    snprintf(error.text, error.bytes, "payload of %zu bytes, want %zu", bytes, 4 * n);
    return 1;
  }
  if (n > 0) memcpy(values, payload, 4 * (n - (f->leaves_the_last ? 1 : 0)));
  return 0;
}

static const thinwire_parameter_v1 parameters[] = {
    {"mischief", "\"none\"", "what it does wrong"},
    {"other", "1", "nothing"},
};

static const thinwire_codec_v1 table = {
    FAKE_ABI,    sizeof(thinwire_codec_v1),
    FAKE_NAME,   "1.0",
    "for tests", parameters,
    2,           create,
    destroy,     bound,
    encode,      decode,
};

#ifndef FAKE_WITHOUT_ENTRY
const thinwire_codec_v1* thinwire_codec(void) { return &table; }
#else
const thinwire_codec_v1* another_name(void) { return &table; }
#endif
