# Writes tests as one source. The unnamed namespace of each is put into a namespace named after its file,
# so that two may use a name for two things; compilers name the files and lines that people edit.
FNR == 1 { printf "#line 1 \"%s\"\n", FILENAME }
/^namespace {$/ {
  file = FILENAME
  gsub(/[^a-z0-9]/, "_", file)
  print "namespace in_" file " { namespace {"
  next
}
/^}  \/\/ namespace$/ { print "} }  // namespace"; next }
{ print }
