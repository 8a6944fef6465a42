# A program without an operating system that uses the devices of an HVM guest, each by a function of its
# own: ports and memory that the device model emulates, others that Xen itself emulates, and instructions
# that exit. It says "LAB ready" on its serial line, then repeats rounds of the same work forever.

  .set COM1, 0x3f8
  .set LAPIC, 0xfee00000
  .set TIMER_VECTOR, 0x40

  .text
  .code64

# Defines a function with a symbol that has a size.
  .macro function name
  .global \name
  .type \name, @function
  .balign 64
\name:
  .endm
  .macro end name
  .size \name, . - \name
  .endm

function main
  call start_timer
  leaq ready(%rip), %rsi
  call print
round:
  call compute
  call use_serial_line             # device model: UART
  call read_disk                   # device model: IDE
  call read_pci_configuration      # device model; the address port is Xen's
  call read_vga_memory             # device model or nobody
  call read_clock                  # Xen: RTC
  call read_pit                    # Xen: PIT
  call read_pm_timer               # Xen: ACPI PM timer
  call read_hpet                   # Xen
  call read_ioapic                 # Xen
  call read_lapic                  # Xen
  call query_cpuid
  call read_msr
  call wait_for_tick
  jmp round
end main

# print: writes the text at RSI to the serial line, up to its zero.
function print
1:
  lodsb
  testb %al, %al
  jz 2f
  movw $COM1, %dx
  outb %al, %dx
  jmp 1b
2:
  ret
end print

function compute
  movl $3000000, %ecx
1:
  imulq $3, %rax, %rax
  incq %rax
  decl %ecx
  jnz 1b
  ret
end compute

# Each function below does its access ACCESSES times.
  .set ACCESSES, 8

function use_serial_line
  movl $ACCESSES, %ecx
  movw $(COM1 + 7), %dx            # scratch register: written and read, and sends nothing
1:
  movb %cl, %al
  outb %al, %dx
  inb %dx, %al
  decl %ecx
  jnz 1b
  ret
end use_serial_line

# Reads the first sector of the disk by programmed I/O (ATA: READ SECTORS).
function read_disk
  movw $0x1f6, %dx
  movb $0xe0, %al                  # first drive, LBA
  outb %al, %dx
  movw $0x1f2, %dx
  movb $1, %al
  outb %al, %dx
  xorb %al, %al
  movw $0x1f3, %dx
  outb %al, %dx
  movw $0x1f4, %dx
  outb %al, %dx
  movw $0x1f5, %dx
  outb %al, %dx
  movw $0x1f7, %dx
  movb $0x20, %al
  outb %al, %dx
1:
  inb %dx, %al
  testb $0x80, %al                 # busy
  jnz 1b
  testb $0x08, %al                 # data request
  jz 2f
  leaq sector(%rip), %rdi
  movw $0x1f0, %dx
  movl $256, %ecx
  cld
  rep insw
2:
  ret
end read_disk

function read_pci_configuration
  movl $ACCESSES, %ecx
  xorl %ebx, %ebx
1:
  movl %ebx, %eax
  orl $0x80000000, %eax
  movw $0xcf8, %dx
  outl %eax, %dx
  movw $0xcfc, %dx
  inl %dx, %eax
  addl $4, %ebx
  decl %ecx
  jnz 1b
  ret
end read_pci_configuration

function read_vga_memory
  movl $ACCESSES, %ecx
  movl $0xa0000, %ebx
1:
  movb (%rbx), %al
  incq %rbx
  decl %ecx
  jnz 1b
  ret
end read_vga_memory

function read_clock
  movl $ACCESSES, %ecx
1:
  movb %cl, %al
  outb %al, $0x70
  inb $0x71, %al
  decl %ecx
  jnz 1b
  ret
end read_clock

function read_pit
  movl $ACCESSES, %ecx
1:
  xorb %al, %al                    # latch counter 0
  outb %al, $0x43
  inb $0x40, %al
  inb $0x40, %al
  decl %ecx
  jnz 1b
  ret
end read_pit

function read_pm_timer
  movl $ACCESSES, %ecx
  movw $0xb008, %dx
1:
  inl %dx, %eax
  decl %ecx
  jnz 1b
  ret
end read_pm_timer

# Reads ACCESSES times 32 bits of memory at RBX.
  .macro read_memory address
  movl $ACCESSES, %ecx
  movl $\address, %ebx
1:
  movl (%rbx), %eax
  decl %ecx
  jnz 1b
  ret
  .endm

function read_hpet
  read_memory 0xfed000f0           # main counter
end read_hpet

function read_ioapic
  read_memory 0xfec00000           # index register
end read_ioapic

function read_lapic
  read_memory (LAPIC + 0x390)      # the timer's current count
end read_lapic

function query_cpuid
  movl $ACCESSES, %esi
1:
  movl $1, %eax
  cpuid
  decl %esi
  jnz 1b
  ret
end query_cpuid

function read_msr
  movl $ACCESSES, %esi
1:
  movl $0x1b, %ecx                 # APIC base
  rdmsr
  decl %esi
  jnz 1b
  ret
end read_msr

function wait_for_tick
  sti
  hlt
  cli
  ret
end wait_for_tick

# The LAPIC's timer, periodic, and the gate of its vector; the PICs masked.
function start_timer
  movb $0xff, %al
  outb %al, $0x21
  outb %al, $0xa1
  leaq timer_tick(%rip), %rax
  leaq gates+TIMER_VECTOR*16(%rip), %rdi
  movw %ax, (%rdi)
  movw $8, 2(%rdi)
  movw $0x8e00, 4(%rdi)            # present, interrupt gate
  shrq $16, %rax
  movw %ax, 6(%rdi)
  shrq $16, %rax
  movl %eax, 8(%rdi)
  leaq gates(%rip), %rax
  movq %rax, gate_pointer+2(%rip)
  lidt gate_pointer(%rip)
  movl $LAPIC, %ebx
  movl $0x1ff, 0xf0(%rbx)          # spurious vector: LAPIC on
  movl $0xb, 0x3e0(%rbx)           # divide by 1
  movl $(0x20000 + TIMER_VECTOR), 0x320(%rbx)
  movl $1000000, 0x380(%rbx)       # at Xen's 100 MHz: each 10 ms
  ret
end start_timer

function timer_tick
  pushq %rbx
  movl $LAPIC, %ebx
  movl $0, 0xb0(%rbx)              # end of interrupt
  popq %rbx
  iretq
end timer_tick

  .data
ready:
  .asciz "LAB up standalone\r\nLAB ready\r\n"
gate_pointer:
  .word 256 * 16 - 1
  .quad 0

  .bss
  .balign 16
gates:
  .skip 256 * 16
sector:
  .skip 512
