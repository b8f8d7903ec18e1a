# LibTorch for the CPU, without find_package(Torch): the wheel's own config file asks for a whole CUDA toolkit.
# From Torch_DIR (…/share/cmake/Torch of any LibTorch) or else from the venv that scripts/setup.sh makes.

if(Torch_DIR)
  get_filename_component(torch_root ${Torch_DIR}/../../.. ABSOLUTE)
else()
  file(GLOB torch_root ${COXSWAIN_VENV}/lib/python3*/site-packages/torch)
endif()
if(NOT torch_root OR NOT EXISTS ${torch_root}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "No LibTorch found. Run scripts/setup.sh, or pass -DTorch_DIR=<libtorch>/share/cmake/Torch, "
                      "or -DCOXSWAIN_WITH_TORCH=OFF for everything that needs none.")
endif()
message(STATUS "LibTorch: ${torch_root}")

add_library(coxswain_torch INTERFACE)
target_include_directories(coxswain_torch SYSTEM INTERFACE
    ${torch_root}/include ${torch_root}/include/torch/csrc/api/include)
target_compile_definitions(coxswain_torch INTERFACE USE_C10D_GLOO USE_DISTRIBUTED)
# Programs too: a precompiled header is only good for the code model that it was made with.
target_compile_options(coxswain_torch INTERFACE -fPIC)
target_link_libraries(coxswain_torch INTERFACE ${torch_root}/lib/libtorch_cpu.so ${torch_root}/lib/libc10.so)
# libtorch_cpu of the CUDA wheel itself needs libcudart and libcupti, found by its own run path.
target_link_options(coxswain_torch INTERFACE -Wl,-rpath,${torch_root}/lib -Wl,--allow-shlib-undefined)

file(WRITE ${PROJECT_BINARY_DIR}/torch_pch.cpp "")
add_library(coxswain_torch_pch OBJECT ${PROJECT_BINARY_DIR}/torch_pch.cpp)
target_link_libraries(coxswain_torch_pch PRIVATE coxswain_options coxswain_torch)
target_precompile_headers(coxswain_torch_pch PRIVATE <torch/torch.h>)
