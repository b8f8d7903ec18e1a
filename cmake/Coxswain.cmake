# What every target of ours shares: warnings, sanitizers, ccache; and the three kinds of target there are.

set(COXSWAIN_VENV ${PROJECT_SOURCE_DIR}/build/venv CACHE PATH
    "The Python environment of scripts/setup.sh: the torch wheel, and with --tests the judges")
set(COXSWAIN_PYTHON ${COXSWAIN_VENV}/bin/python)

find_program(CCACHE ccache)
if(CCACHE)
  # A precompiled header changes nothing that the preprocessor sees of __TIME__; without this ccache refuses it.
  # Depend mode takes the compiler's own list of headers instead of preprocessing each file a first time.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_DEPEND=1 CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
endif()

add_library(coxswain_options INTERFACE)
target_compile_options(coxswain_options INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 at -O3 sees overlaps and overflows in std::string's operator+ that aren't there (its bug 105651).
  target_compile_options(coxswain_options INTERFACE -Wno-restrict -Wno-stringop-overflow)
endif()
if(CCACHE)
  target_compile_options(coxswain_options INTERFACE -fpch-preprocess)
endif()
target_include_directories(coxswain_options INTERFACE ${PROJECT_SOURCE_DIR})
if(COXSWAIN_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Instrumented, std::regex looks uninitialized to it (GCC's bug 105562).
    target_compile_options(coxswain_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  add_compile_options(-fsanitize=${COXSWAIN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${COXSWAIN_SANITIZE})
endif()
if(COXSWAIN_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# coxswain_library(NAME source...): a static library that links no LibTorch.
function(coxswain_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PRIVATE coxswain_options PUBLIC coxswain_contract)
endfunction()

# coxswain_torch_library(NAME source...): a static library of the training worker; shares the one LibTorch PCH.
function(coxswain_torch_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PRIVATE coxswain_options PUBLIC coxswain_contract coxswain_torch)
  target_precompile_headers(${name} REUSE_FROM coxswain_torch_pch)
endfunction()

# coxswain_test(NAME [TORCH] SOURCES ... LIBS ... [LABELS ...] [TIMEOUT s]): one GoogleTest binary, one ctest entry
# for the whole binary (starting LibTorch for each case would cost more than the cases).
# PROCESSORS: ranks, and LibTorch itself, keep two cores busy; scripts/test.sh lets only tests that mostly wait run
# beside them.
function(coxswain_test name)
  cmake_parse_arguments(T "TORCH" "TIMEOUT" "SOURCES;LIBS;LABELS" ${ARGN})
  if(T_TORCH AND NOT COXSWAIN_WITH_TORCH)
    return()
  endif()
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE coxswain_options ${T_LIBS} GTest::gmock GTest::gtest GTest::gtest_main)
  if(T_TORCH)
    target_link_libraries(${name} PRIVATE coxswain_torch)
    target_precompile_headers(${name} REUSE_FROM coxswain_torch_pch)
    set(processors 2)
  else()
    set(processors 1)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}" ENVIRONMENT "${COXSWAIN_TEST_ENV}"
                       PROCESSORS ${processors})
endfunction()

# coxswain_python_test(NAME script [ARGS ...] [LABELS ...] [TIMEOUT s]): a test whose judge is a Python program
# (transformers, peft, tensorboard …). The script exits non-zero on failure and finds our programs in
# $COXSWAIN_BINARY_DIR/bin. Without LibTorch (the preset `pure`) there are no judges either.
function(coxswain_python_test name script)
  cmake_parse_arguments(T "" "TIMEOUT" "ARGS;LABELS" ${ARGN})
  if(NOT COXSWAIN_WITH_TORCH)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${COXSWAIN_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${T_ARGS}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}" ENVIRONMENT "${COXSWAIN_TEST_ENV}"
                       PROCESSORS 2)
endfunction()

set(COXSWAIN_TEST_ENV "COXSWAIN_SOURCE_DIR=${PROJECT_SOURCE_DIR}" "COXSWAIN_BINARY_DIR=${PROJECT_BINARY_DIR}"
    "COXSWAIN_PYTHON=${COXSWAIN_PYTHON}" "HF_HUB_OFFLINE=1" "TOKENIZERS_PARALLELISM=false")
