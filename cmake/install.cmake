# Installation: headers, libraries, CMake package (find_package(weir)), pkg-config file (pkg-config weir).

include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY WEIR_LIBRARIES)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weir)

# -- libraries and headers
set(needs "")
set(link_flags "") # the dependent before what it depends on, as static linking wants it
foreach(name IN LISTS libraries)
  get_target_property(folder weir_${name} SOURCE_DIR)
  install(TARGETS weir_${name} EXPORT weirTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${folder}/weir/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
  list(APPEND needs ${WEIR_NEEDS_${name}})
  string(PREPEND link_flags " -lweir-${name}")
endforeach()
install(TARGETS weir EXPORT weirTargets)
install(FILES ${PROJECT_BINARY_DIR}/include/weir/weir.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir)

# -- CMake package
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${package_folder})
configure_package_config_file(cmake/weirConfig.cmake.in ${PROJECT_BINARY_DIR}/weirConfig.cmake
  INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weirConfig.cmake ${PROJECT_BINARY_DIR}/weirConfigVersion.cmake
  DESTINATION ${package_folder})

# -- pkg-config: a static library needs what it uses at every link, a shared one brings it along
list(JOIN needs ", " requires)
string(REGEX REPLACE "([<>=]+)" " \\1 " requires "${requires}")
if(BUILD_SHARED_LIBS)
  set(requires_field "Requires.private: ${requires}")
  set(libs_private_field "Libs.private: -pthread -lm")
  set(libs_tail "")
else()
  set(requires_field "Requires: ${requires}")
  set(libs_private_field "Libs.private:")
  set(libs_tail " -pthread -lm")
endif()

# The file finds its prefix from its own place where it can, so that the tree may be moved.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
  set(pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
  set(pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
  set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
