# Boot sector: the BIOS loads it at 0x7c00 and starts it in real mode. It loads the program behind it on
# the disk, enters long mode and calls it. Conventions: int 13h function 42h (BIOS Enhanced Disk Drive
# Services), page tables and long mode as in AMD's manual, volume 2, chapters 5 and 14.

  .set PROGRAM, 0x10000            # physical address at which the program is loaded
  .set SECTORS, 32                 # sectors of 512 bytes that are loaded
  .set TABLES, 0x1000              # page tables: 0x1000 to 0x7000
  .set KERNEL_SPACE, 0xfffff80000000000  # the first GiB of memory is mapped there, too

  .section .boot, "ax"
  .code16
  .global boot_sector
boot_sector:
  ljmp $0, $1f
1:
  cli
  xorw %ax, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movw $0x7c00, %sp
  movw $disk_address_packet, %si
  movb $0x42, %ah                  # read; the BIOS left the drive in DL
  int $0x13
  jc .

  # Identity map of the first 4 GiB in pages of 2 MiB, and the first of them once more at KERNEL_SPACE.
  movw $TABLES, %di
  xorl %eax, %eax
  movw $(6 * 4096 / 4), %cx
  cld
  rep stosl
  movl $(TABLES + 0x1000 + 3), TABLES
  movl $(TABLES + 0x1000 + 3), TABLES + ((KERNEL_SPACE >> 39) & 511) * 8
  movl $(TABLES + 0x2000 + 3), TABLES + 0x1000
  movl $(TABLES + 0x3000 + 3), TABLES + 0x1008
  movl $(TABLES + 0x4000 + 3), TABLES + 0x1010
  movl $(TABLES + 0x5000 + 3), TABLES + 0x1018
  movw $(TABLES + 0x2000), %di
  movl $0x83, %eax                 # present, writable, 2 MiB
2:
  movl %eax, (%di)
  addw $8, %di
  addl $0x200000, %eax
  jnc 2b

  inb $0x92, %al                   # address line 20 on
  orb $2, %al
  outb %al, $0x92
  movl $0x20, %eax                 # CR4.PAE
  movl %eax, %cr4
  movl $TABLES, %eax
  movl %eax, %cr3
  movl $0xc0000080, %ecx           # EFER.LME
  rdmsr
  orl $0x100, %eax
  wrmsr
  lgdtl descriptor_pointer
  movl $0x80000011, %eax           # CR0: PG, ET, PE
  movl %eax, %cr0
  ljmpl $8, $long_mode

  .code64
long_mode:
  movl $16, %eax
  movl %eax, %ss
  movl %eax, %ds
  movl %eax, %es
  movabsq $(KERNEL_SPACE + 0x7c00), %rsp
  movabsq $main, %rax
  jmp *%rax

  .balign 8
disk_address_packet:
  .byte 16, 0
  .word SECTORS
  .word 0, PROGRAM >> 4            # offset, segment
  .quad 1                          # first sector
descriptors:
  .quad 0
  .quad 0x00209a0000000000         # code, 64 bits
  .quad 0x0000920000000000         # data
descriptor_pointer:
  .word descriptor_pointer - descriptors - 1
  .long descriptors

  .org 510
  .word 0xaa55
