// The link rate at which a codec pays off.
#pragma once

namespace thinwire {

// Returns the link rate in bits per second below which a codec saves time, if encoding, transfer
// and decoding follow one another: bits saved / `codec_seconds`, which is the time of encoding and
// decoding. Returns 0 where nothing was saved or timed.
inline double BreakEvenBitsPerSecond(double raw_bytes, double wire_bytes, double codec_seconds) {
  if (wire_bytes >= raw_bytes || codec_seconds <= 0) return 0;
  return 8 * (raw_bytes - wire_bytes) / codec_seconds;
}

}  // namespace thinwire
