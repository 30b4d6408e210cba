# Common settings of all targets.

# Hardening flags; which of them exist depends on the compiler and the processor.
if(WEIR_HARDENING)
  include(CheckCCompilerFlag)
  include(CheckLinkerFlag)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES C)
  set(WEIR_HARDENING_FLAGS "")
  foreach(flag IN ITEMS -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "WEIR_HAS${flag}" has)
    check_c_compiler_flag("${flag} -Werror" ${has})
    if(${has})
      list(APPEND WEIR_HARDENING_FLAGS ${flag})
    endif()
  endforeach()
  check_linker_flag(C LINKER:-z,shstk WEIR_HAS_SHSTK)
  check_linker_flag(C LINKER:-z,ibt WEIR_HAS_IBT)
endif()

function(weir_target_defaults target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                                             CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF)
  # The build tree is laid out as the installed one, so that both have the same RUNPATH: where CMake has to change it at
  # installation, it ends the one before with a colon, and an empty entry means the current directory.
  file(RELATIVE_PATH libraries ${CMAKE_CURRENT_BINARY_DIR} ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${target} PROPERTIES
    BUILD_WITH_INSTALL_RPATH ON
    INSTALL_RPATH "$ORIGIN/${libraries}" # of what is installed, ../lib: as above
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})
  # What it does not call, it does not load: see scripts/check-needed.
  target_link_options(${target} PRIVATE LINKER:--as-needed)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                           $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
  if(WEIR_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(WEIR_HARDENING AND NOT WEIR_SANITIZE)
    set(optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
    target_compile_options(${target} PRIVATE ${WEIR_HARDENING_FLAGS}
                                             "$<${optimised}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
    target_link_options(${target} PRIVATE LINKER:-z,relro,-z,now)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    # The linker marks a file for the processor's control-flow protection (IBT, SHSTK) if all of its objects are. On
    # Debian 12 three of the C library's are not: Scrt1.o, crti.o and crtn.o. They are fit for the shadow stack. For IBT
    # their functions _start and _init are not; _init does nothing in a library, so ours have none.
    if(WEIR_HAS_fcf_protection_full AND WEIR_HAS_SHSTK)
      target_link_options(${target} PRIVATE LINKER:-z,shstk)
    endif()
    if(WEIR_HAS_fcf_protection_full AND WEIR_HAS_IBT AND NOT type STREQUAL EXECUTABLE)
      target_link_options(${target} PRIVATE LINKER:-z,ibt LINKER:-init=weir__none LINKER:-fini=weir__none)
    endif()
  endif()
  if(WEIR_SANITIZE)
    # -O1 runs three times as fast as -O0. What gcc then says about the code that sanitizers add is left to the other builds.
    target_compile_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer $<$<CONFIG:Debug>:-O1>
                                             "$<$<C_COMPILER_ID:GNU>:-Wno-format-truncation;-Wno-maybe-uninitialized>")
    target_link_options(${target} PRIVATE -fsanitize=${WEIR_SANITIZE})
  endif()
endfunction()

# weir_room(engine/trace USES common engine/base SOURCES trace_ring.c LINKS PkgConfig::libuv): the objects of the files of one
# folder, for a library. Private headers are included by their path from the project's root. Both these includes and the
# calls between objects may only lead to the rooms that USES names: scripts/check-layers proves it from the objects.
#   LINKS    targets whose public headers it includes
#   DEFINES  for the compiler
function(weir_room folder)
  cmake_parse_arguments(ARG "" "" "USES;SOURCES;LINKS;DEFINES" ${ARGN})
  string(MAKE_C_IDENTIFIER "weir_room_${folder}" target)
  list(TRANSFORM ARG_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/${folder}/)
  add_library(${target} OBJECT ${ARG_SOURCES})
  weir_target_defaults(${target})
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  # Calls of a library's own public functions need no indirection, as no program replaces them.
  if(BUILD_SHARED_LIBS AND NOT WEIR_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
  target_compile_definitions(${target} PRIVATE $<$<BOOL:${BUILD_SHARED_LIBS}>:WEIR_IS_SHARED>)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE ${ARG_DEFINES})
  target_link_libraries(${target} PRIVATE ${ARG_LINKS})
  weir_uses(${folder} ${ARG_USES})
  set_property(GLOBAL APPEND PROPERTY WEIR_ROOM_TARGETS ${target})
endfunction()

# weir_uses(tools/view tools/cli common): which rooms a folder may include and call. For folders that are no room of a library.
function(weir_uses folder)
  string(REPLACE ";" " " uses "${ARGN}")
  set_property(GLOBAL APPEND PROPERTY WEIR_ROOMS "${folder}: ${uses}\n")
endfunction()

# weir_room_objects(OBJECTS engine/base engine/core) sets OBJECTS to the objects of these rooms, for other targets.
function(weir_room_objects variable)
  set(objects "")
  foreach(folder IN LISTS ARGN)
    string(MAKE_C_IDENTIFIER "weir_room_${folder}" target)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# weir_library_rooms(ROOMS engine) sets ROOMS to the rooms of a library.
function(weir_library_rooms variable name)
  get_property(rooms GLOBAL PROPERTY WEIR_ROOMS_OF_${name})
  set(${variable} ${rooms} PARENT_SCOPE)
endfunction()

# weir_library_sources(SOURCES engine) sets SOURCES to the files of a library, with their whole paths.
function(weir_library_sources variable name)
  weir_library_rooms(rooms ${name})
  set(sources "")
  foreach(folder IN LISTS rooms)
    string(MAKE_C_IDENTIFIER "weir_room_${folder}" target)
    get_target_property(of_room ${target} SOURCES)
    list(APPEND sources ${of_room})
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# weir_library(engine ROOMS common engine/base): the target weir_engine of these rooms, exported as weir::engine, with the
# public headers below ${CMAKE_CURRENT_SOURCE_DIR}/weir. It joins the umbrella and is installed.
function(weir_library name)
  cmake_parse_arguments(ARG "" "" "ROOMS" ${ARGN})
  set(target weir_${name})
  set_property(GLOBAL PROPERTY WEIR_ROOMS_OF_${name} ${ARG_ROOMS})
  weir_room_objects(objects ${ARG_ROOMS})
  add_library(${target} ${objects})
  add_library(weir::${name} ALIAS ${target})
  weir_target_defaults(${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name}
    OUTPUT_NAME weir-${name}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH $ORIGIN # one finds the other wherever they lie
    LINKER_LANGUAGE C)
  if(BUILD_SHARED_LIBS AND NOT WEIR_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-Bsymbolic-functions)
  endif()
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_property(GLOBAL APPEND PROPERTY WEIR_LIBRARIES ${name})
endfunction()

# weir::weir, everything that was built, and <weir/weir.h>, which includes all its headers.
function(weir_umbrella)
  get_property(libraries GLOBAL PROPERTY WEIR_LIBRARIES)
  add_library(weir INTERFACE)
  add_library(weir::weir ALIAS weir)
  set(includes "")
  foreach(name IN LISTS libraries)
    target_link_libraries(weir INTERFACE weir_${name})
    get_target_property(folder weir_${name} SOURCE_DIR)
    file(GLOB headers RELATIVE ${folder} CONFIGURE_DEPENDS ${folder}/weir/*.h)
    list(SORT headers)
    foreach(header IN LISTS headers)
      string(APPEND includes "#include <${header}>\n")
    endforeach()
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/weir.h.in ${PROJECT_BINARY_DIR}/include/weir/weir.h @ONLY)
  target_include_directories(weir INTERFACE
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endfunction()
