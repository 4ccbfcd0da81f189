# polymux_warnings(target): adds the project's warnings to a target. Third-party code is compiled without them.
function(polymux_warnings target)
    if(CMAKE_UNITY_BUILD)
        return()
    endif()
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
        -Wold-style-cast -Woverloaded-virtual -Wformat=2)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(${target} PRIVATE -Wduplicated-cond -Wlogical-op -Wuseless-cast)
    endif()
    if(POLYMUX_WERROR)
        target_compile_options(${target} PRIVATE -Werror)
    endif()
endfunction()
