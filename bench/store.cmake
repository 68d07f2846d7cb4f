ember_bench(scale_bench FILES ${CMAKE_CURRENT_LIST_DIR}/scale_bench.cc DEPS ember_store)
