// A livepatch for Xen: get_s_time(), which returns Xen's time, becomes slow, so that samples fall into
// the code that replaces it. The function that it calls replaces nothing, so Xen does not print its
// address.
// The layout is that of xen/docs/misc/livepatch.pandoc; XEN_BUILD_ID is that of the Xen it is for.
        .section .text.get_s_time, "ax"
        .globl  get_s_time
        .type   get_s_time, @function
get_s_time:
.Lbegin:
        mov     $12000, %ecx
1:      dec     %ecx
        jnz     1b
        call    linger
        xor     %edi, %edi
        jmp     get_s_time_fixed
.Lend:  .size   get_s_time, .Lend - .Lbegin

        .section .text.linger, "ax"
        .type   linger, @function
linger:
        mov     $4000, %ecx
1:      dec     %ecx
        jnz     1b
        ret
        .size   linger, . - linger

        .section .rodata.str, "a"
name:   .string "get_s_time"

// struct livepatch_func, version 2; a livepatch may replace several.
        .section .livepatch.funcs, "aw"
        .balign 8
        .quad   name                    // of the function that is replaced
        .quad   get_s_time              // by this
        .quad   0                       // where it lies: Xen finds that
        .long   .Lend - .Lbegin         // bytes here
        .long   64                      // bytes there: at least so many
        .byte   2
        .skip   39
        .skip   32                      // struct livepatch_expectation: none

        .section .livepatch.depends, "a"
        .balign 4
        .long   4, 20, 3
        .asciz  "GNU"
        .byte   XEN_BUILD_ID

        .section .livepatch.xen_depends, "a"
        .balign 4
        .long   4, 20, 3
        .asciz  "GNU"
        .byte   XEN_BUILD_ID
