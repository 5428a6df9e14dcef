// A library that plugins of the zoo need.
extern "C" int zoo_stub() {
  return 1;
}
