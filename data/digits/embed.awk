# Writes a C++ function that returns the records of a comma-separated file of optdigits.
# Set `function_name`. Fails on a row that is not 64 values of 0 to 16 and a class of 0 to 9.
BEGIN {
  FS = ","
  print "#include \"data/digits/optdigits.h\""
  print "namespace thinwire {"
  print "static const char kBytes[] ="
}
{
  if (NF != 65) fail("want 65 values, got " NF)
  line = ""
  for (i = 1; i <= 65; ++i) {
    if ($i !~ /^[0-9]+$/ || $i + 0 > (i == 65 ? 9 : 16)) fail("value " i " is " $i)
    line = line sprintf("\\%03o", $i)
  }
  print "    \"" line "\""
}
END {
  if (failed) exit 1
  print "    ;"
  print "OptdigitsRecords " function_name "() {"
  print "  return {reinterpret_cast<const uint8_t*>(kBytes), " NR "};"
  print "}"
  print "}  // namespace thinwire"
}
function fail(problem) {
  print FILENAME ":" NR ": " problem > "/dev/stderr"
  failed = 1
  exit 1
}
