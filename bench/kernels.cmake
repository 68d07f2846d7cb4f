ember_bench(kernel_bench FILES kernel_bench.cc kernel_peak.cc DEPS ember_kernels)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/kernel_peak.cc
                              PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
endif()
