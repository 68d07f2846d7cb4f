ember_bench(engine_bench FILES ${CMAKE_CURRENT_LIST_DIR}/engine_bench.cc ${CMAKE_CURRENT_LIST_DIR}/peaks.cc DEPS ember_runtime)
