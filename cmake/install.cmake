# Installation: headers, libraries, CMake package (find_package(weir)), pkg-config file (pkg-config weir).

include(CMakePackageConfigHelpers)
get_property(libraries GLOBAL PROPERTY WEIR_LIBRARIES)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weir)

# -- libraries and headers
foreach(name IN LISTS libraries)
  get_target_property(folder weir_${name} SOURCE_DIR)
  install(TARGETS weir_${name} EXPORT weirTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${folder}/weir/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
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

# -- pkg-config: a file for each library (weir-engine, weir-stages, …), and weir for all of them. Static libraries need their
# dependencies at every link; shared ones load them, so the development packages are not needed.

# The files derive their prefix from their own location where possible, so that the tree can be moved.
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

function(weir_pkg_config name description requires libs)
  list(JOIN requires ", " requires)
  string(REGEX REPLACE "([<>=]+)" " \\1 " pc_requires "${requires}")
  set(pc_name ${name})
  set(pc_description "${description}")
  set(pc_libs "${libs}")
  configure_file(cmake/weir.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# Of each library: what it is, and which of ours its public headers and its functions use.
set(description_engine "the pipeline")
set(description_stages "sources and decoders")
set(uses_stages engine)
set(description_isolate "operations in child processes")
set(uses_isolate engine stages)
set(description_stats "recording and reading statistics")
set(uses_stats engine)
set(description_export "metrics and traces for other programs")
set(uses_export engine stats)
set(description_advice "what limits a run, and what would help")
set(uses_advice engine stats)
set(description_dataset "the index of a dataset, and the order of its items")
set(uses_dataset engine stages)
set(all "")
foreach(name IN LISTS libraries)
  set(requires "")
  foreach(used IN LISTS uses_${name})
    list(APPEND requires "weir-${used}=${PROJECT_VERSION}")
  endforeach()
  set(libs "-L\${libdir} -lweir-${name}")
  if(NOT BUILD_SHARED_LIBS)
    list(APPEND requires ${WEIR_NEEDS_${name}})
    string(APPEND libs " -pthread -lm")
  endif()
  weir_pkg_config(weir-${name} "${PROJECT_DESCRIPTION}: ${description_${name}}" "${requires}" "${libs}")
  list(APPEND all "weir-${name}=${PROJECT_VERSION}")
endforeach()
weir_pkg_config(weir "${PROJECT_DESCRIPTION}" "${all}" "")
