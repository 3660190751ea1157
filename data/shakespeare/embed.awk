# Writes a C++ function that returns the bytes of a file, from `od -An -v -to1 FILE`.
BEGIN {
  print "#include \"data/shakespeare/embedded.h\""
  print "namespace thinwire {"
  print "static const char kBytes[] ="
}
{
  for (i = 1; i <= NF; ++i) $i = "\\" $i
  gsub(" ", "")
  print "    \"" $0 "\""
}
END {
  print "    ;"
  print "std::string_view CompressedShakespeare() { return {kBytes, sizeof(kBytes) - 1}; }"
  print "}  // namespace thinwire"
}
