# Writes sources as one, in which compilers name the files and lines that people edit.
# With -v apart=1, the unnamed namespace of each is put into a namespace named after its file, so that
# two may use a name for two things.
FNR == 1 { printf "#line 1 \"%s\"\n", FILENAME }
apart && /^namespace {$/ {
  file = FILENAME
  gsub(/[^a-z0-9]/, "_", file)
  print "namespace in_" file " { namespace {"
  next
}
apart && /^}  \/\/ namespace$/ { print "} }  // namespace"; next }
{ print }
