/* One bit per value: its side of the sample's mean, and how far from it values are on average.
 * Scaled signs are a contraction (Bernstein et al., ICML 2018; Karimireddy et al., ICML 2019).
 *   cc -O2 -ffp-contract=off -shared -fPIC -I thinwire/compress sign_codec.c -o libsign.so
 * Payload: per sample { mean: f32, distance: f32, one bit per value: 1 above the mean }. */
#include "codec_plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int center; /* 0: signs around zero */
} sign_codec;

typedef struct {
  size_t samples, values, bytes; /* samples; of each: values, payload bytes */
} layout;

static layout layout_of(const thinwire_shape_v1* shape) {
  layout l = {(size_t)shape->dims[0], 1, 0};
  for (int32_t i = 1; i < shape->rank; ++i) l.values *= (size_t)shape->dims[i];
  l.bytes = 8 + (l.values + 7) / 8;
  return l;
}

static int fail(thinwire_error_v1 error, const char* what, size_t at) {
  snprintf(error.text, error.bytes, "%s, sample %zu", what, at);
  return 1;
}

static void* create(const char* json, thinwire_error_v1 error) {
  sign_codec* codec = malloc(sizeof(sign_codec));
  if (codec == NULL) return NULL;
  codec->center = strstr(json, "\"center\":true") != NULL;
  if (codec->center || strstr(json, "\"center\":false") != NULL) return codec;
  free(codec);
  fail(error, "center: want true or false", 0);
  return NULL;
}

static size_t bound(const void* codec, const thinwire_shape_v1* shape) {
  (void)codec;
  const layout l = layout_of(shape);
  return l.samples * l.bytes;
}

static int encode(const void* codec, const float* x, const thinwire_shape_v1* shape, uint64_t key,
                  uint8_t* payload, size_t capacity, size_t* bytes, thinwire_error_v1 error) {
  const layout l = layout_of(shape);
  (void)key, (void)capacity;
  for (size_t s = 0; s < l.samples; ++s, x += l.values, payload += l.bytes) {
    double sum = 0, distance = 0;
    for (size_t i = 0; i < l.values; ++i) sum += x[i];
    const float mean = ((const sign_codec*)codec)->center && l.values ? (float)(sum / l.values) : 0;
    for (size_t i = 0; i < l.values; ++i) distance += fabs((double)x[i] - mean);
    const float numbers[2] = {mean, l.values ? (float)(distance / l.values) : 0};
    if (!isfinite(numbers[0]) || !isfinite(numbers[1])) return fail(error, "not finite", s);
    memcpy(payload, numbers, 8);
    memset(payload + 8, 0, l.bytes - 8);
    for (size_t i = 0; i < l.values; ++i) payload[8 + i / 8] |= (x[i] > mean) << (i % 8);
  }
  *bytes = l.samples * l.bytes;
  return 0;
}

static int decode(const void* codec, const uint8_t* payload, size_t bytes,
                  const thinwire_shape_v1* shape, float* x, thinwire_error_v1 error) {
  const layout l = layout_of(shape);
  if (bytes != bound(codec, shape)) return fail(error, "payload of another length", 0);
  for (size_t s = 0; s < l.samples; ++s, x += l.values, payload += l.bytes) {
    float numbers[2];
    memcpy(numbers, payload, 8);
    const float low = numbers[0] - numbers[1], high = numbers[0] + numbers[1];
    if (!isfinite(low) || !isfinite(high)) return fail(error, "not finite", s);
    for (size_t i = 0; i < l.values; ++i) x[i] = payload[8 + i / 8] >> (i % 8) & 1 ? high : low;
  }
  return 0;
}

static const thinwire_parameter_v1 parameters[] = {
    {"center", "true", "signs around each sample's mean; false: around zero"}};

static const thinwire_codec_v1 table = {
    THINWIRE_CODEC_ABI, sizeof(table), "sign", "1", "one bit per value and two numbers per sample",
    parameters, 1, create, free, bound, encode, decode};

const thinwire_codec_v1* thinwire_codec(void) { return &table; }
