# Entry of the bare-metal image, as a Multiboot 1 loader calls it: 32-bit protected mode, no paging. Maps the
# first 4 GiB to themselves in pages of 2 MiB, enters 64-bit mode, switches on every vector state that the
# processor has (up to AVX-512) and calls run_cases(). Formats: Multiboot specification 0.6.96, Intel SDM vol. 3.
.set magic, 0x1badb002
.set addresses_given, 0x00010000        # the loader takes the load addresses from this header

.section .multiboot, "a"
.balign 4
header:
  .long magic, addresses_given, -(magic + addresses_given)
  .long header, image_begin, image_end, bss_end, start

.text
.code32
.globl start
start:
  cli
  mov $stack_end, %esp
  # Tables: one top entry, four entries of 1 GiB, 4 x 512 pages of 2 MiB.
  mov $top_table, %edi
  mov $(tables_end - top_table) / 4, %ecx
  xor %eax, %eax
  rep stosl
  movl $gib_table + 3, top_table        # present, writable
  mov $page_table + 3, %eax
  mov $gib_table, %edi
  mov $4, %ecx
each_gib:
  mov %eax, (%edi)
  add $4096, %eax
  add $8, %edi
  loop each_gib
  mov $0x83, %eax                       # present, writable, large
  mov $page_table, %edi
  mov $2048, %ecx
each_page:
  mov %eax, (%edi)
  add $0x200000, %eax
  add $8, %edi
  loop each_page
  mov $top_table, %eax
  mov %eax, %cr3
  mov %cr4, %eax
  or $0x40620, %eax                     # PAE, OSFXSR, OSXMMEXCPT, OSXSAVE
  mov %eax, %cr4
  mov $0xc0000080, %ecx                 # EFER
  rdmsr
  or $0x100, %eax                       # LME
  wrmsr
  mov %cr0, %eax
  and $~4, %eax                         # EM off
  or $0x80000022, %eax                  # PG, NE, MP
  mov %eax, %cr0
  lgdt gdt_pointer
  ljmp $8, $long_mode
.code64
long_mode:
  mov $16, %ax
  mov %ax, %ds
  mov %ax, %es
  mov %ax, %ss
  mov $0xd, %eax                        # which states XCR0 may have
  xor %ecx, %ecx
  cpuid
  and $0xe7, %eax                       # x87, SSE, AVX, the three of AVX-512
  xor %ecx, %ecx
  xor %edx, %edx
  xsetbv
  mov $stack_end, %rsp
  xor %ebp, %ebp
  call run_cases
stop:
  hlt
  jmp stop

.balign 8
gdt:
  .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff
gdt_pointer:
  .word gdt_pointer - gdt - 1
  .long gdt

.bss
.balign 4096
top_table: .skip 4096
gib_table: .skip 4096
page_table: .skip 4 * 4096
tables_end:
.skip 1 << 18
stack_end:
