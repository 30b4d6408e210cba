# Installation: headers, libraries, CMake package, pkg-config file.
