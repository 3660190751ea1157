/* C interface of a user's own codec, built as a shared library. The library needs only this header,
 * no Thinwire library. How to get from here to a training run: docs/add_a_codec.md.
 *
 * Rules that Thinwire rests on:
 *   - A codec remembers nothing between calls: equal values and keys give equal payloads.
 *   - Any number of threads call bound, encode and decode at once.
 *   - Payloads come from other machines: decode checks every byte that it relies on.
 *   - decode gives the same bits on every machine: fixed order of sums, -ffp-contract=off.
 *   - No C++ exception leaves a function.
 *   - No pointer that a function gets is null, also of no bytes.
 *   - Values are little-endian fp32; a tensor in bf16 is widened before and narrowed after.
 */
#ifndef THINWIRE_COMPRESS_CODEC_PLUGIN_H_
#define THINWIRE_COMPRESS_CODEC_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface. A library built for another one is refused. */
#define THINWIRE_CODEC_ABI 1u

/* Shape of one boundary tensor, outermost extent first, the last one contiguous: [batch, height,
 * width, channels], [batch, seq, hidden] or [batch, features]. An extent may be 0. */
typedef struct thinwire_shape_v1 {
  const int64_t* dims;
  int32_t rank; /* number of extents, 1 to 6 */
} thinwire_shape_v1;

/* Parameter that the codec takes. Its strings live as long as the library. */
typedef struct thinwire_parameter_v1 {
  const char* name;
  const char* default_json; /* as JSON: "true", "0.5", "\"fast\"" */
  const char* help;         /* one line */
} thinwire_parameter_v1;

/* Buffer of `bytes` bytes in which a function says in one line, ended by a NUL, what is wrong. */
typedef struct thinwire_error_v1 {
  char* text;
  size_t bytes;
} thinwire_error_v1;

/* Description of a library, which lives as long as the library. No pointer in it is null, except
 * `parameters` if there are none. */
typedef struct thinwire_codec_v1 {
  uint32_t abi;          /* THINWIRE_CODEC_ABI */
  uint32_t struct_bytes; /* sizeof(thinwire_codec_v1) */

  const char* name; /* letters, digits, '_', '-', '.'; at most 64; not that of a built-in codec */
  const char*
      version;      /* likewise; a changed payload takes a new one: both ends must have the same */
  const char* help; /* one line */
  const thinwire_parameter_v1* parameters;
  size_t num_parameters;

  /* Makes a codec. `parameters_json` is a JSON object without spaces that holds every parameter
   * above, in alphabetical order, and nothing else. Returns null if a value makes no sense; error
   * says why. */
  void* (*create)(const char* parameters_json, thinwire_error_v1 error);
  void (*destroy)(void* codec);

  /* Returns an upper bound of the payload's bytes for tensors of this shape; receivers reserve as
   * much. */
  size_t (*bound)(const void* codec, const thinwire_shape_v1* shape);

  /* Writes at most `capacity` bytes (at least bound) to `payload` and their number to *bytes.
   * `random_key` differs from message to message, for codecs that draw random numbers; what the
   * decoder needs of it goes into the payload. Returns 0, or another number if the values cannot be
   * encoded (NaN, infinity); error says why. */
  int (*encode)(const void* codec, const float* values, const thinwire_shape_v1* shape,
                uint64_t random_key, uint8_t* payload, size_t capacity, size_t* bytes,
                thinwire_error_v1 error);

  /* Decodes `payload` and overwrites all values. Returns 0, or another number if `payload` is not
   * for a tensor of this shape; error says why. Reads no more than `bytes` bytes, whatever they
   * hold. */
  int (*decode)(const void* codec, const uint8_t* payload, size_t bytes,
                const thinwire_shape_v1* shape, float* values, thinwire_error_v1 error);
} thinwire_codec_v1;

/* Returns the library's description. The only symbol that a library must export. */
const thinwire_codec_v1* thinwire_codec(void);

#ifdef __cplusplus
}
#endif

#endif /* THINWIRE_COMPRESS_CODEC_PLUGIN_H_ */
