# The three ways in which this project makes a target: a module, a test and a bench.

# -O2 keeps the build short; the modules whose loops the compiler vectorises ask for -O3 (FAST).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Arithmetic must not depend on what the compiler fuses: a fused multiply-add is written where it is
# meant.
add_library(ember_flags INTERFACE)
target_compile_options(ember_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Woverloaded-virtual -Werror -ffp-contract=off
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
target_include_directories(ember_flags INTERFACE ${PROJECT_SOURCE_DIR})
if(EMBER_SANITIZE)
  target_compile_options(ember_flags INTERFACE
    -fsanitize=${EMBER_SANITIZE} -fno-omit-frame-pointer -g1 -O1)
  target_link_options(ember_flags INTERFACE -fsanitize=${EMBER_SANITIZE})
  if(EMBER_SANITIZE MATCHES "thread")
    target_compile_options(ember_flags INTERFACE -Wno-tsan)
  endif()
endif()

# ember_module(NAME [FAST] SOURCES a.cc ... HEADERS a.h ... DEPS ember_base ... LIBRARIES x ...)
# DEPS are our modules (public); LIBRARIES are third-party (private: our headers include none).
function(ember_module name)
  cmake_parse_arguments(arg "FAST" "" "SOURCES;HEADERS;DEPS;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_sources(${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  target_link_libraries(${name} PUBLIC ember_flags ${arg_DEPS} PRIVATE ${arg_LIBRARIES})
  if(arg_FAST AND NOT EMBER_SANITIZE)
    target_compile_options(${name} PRIVATE -O3)
  endif()
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

# ember_tests(NAME LABEL unit FILES a_test.cc ... DEPS ember_x ...): one program, each TEST its own
# ctest.
function(ember_tests name)
  cmake_parse_arguments(arg "" "LABEL;TIMEOUT" "FILES;DEPS;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_FILES})
  target_link_libraries(${name} PRIVATE
    ember_flags ${arg_DEPS} ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE -O1)
  target_compile_definitions(${name} PRIVATE EMBER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${arg_LABEL}."
    DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
endfunction()

# ember_bench(NAME FILES a.cc DEPS ember_x ...)
function(ember_bench name)
  cmake_parse_arguments(arg "" "" "FILES;DEPS;LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_FILES})
  target_link_libraries(${name} PRIVATE ember_flags ${arg_DEPS} ${arg_LIBRARIES})
endfunction()
