/* Included before each source of weir (see CMakeLists.txt): run_weir() sets the variables in these sections back. */
#pragma clang section data = "command_data" bss = "command_bss"
