ember_bench(index_bench FILES ${CMAKE_CURRENT_LIST_DIR}/index_bench.cc DEPS ember_prefix_index)
