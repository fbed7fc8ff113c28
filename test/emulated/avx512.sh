#!/usr/bin/env bash
# avx512.sh CASES_PROGRAM COMPILER BUILD_FOLDER FLAG...: runs the AVX-512 VNNI kernels of every format in Bochs, which executes
# these instructions on any machine. A bare-metal image holds the kernels and cases with the results of the scalar
# ones; nothing but a processor is emulated, so it takes seconds. 77 (skipped) where a tool is missing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
write_cases=$1 compiler=$2 build=$3
vectors=("${@:4}")  # the options that the build has for this instruction set

# shellcheck source=../../runtime/demo/dependencies.sh
. "$root/runtime/demo/dependencies.sh"
for tool in bochs-bin xorriso script objcopy ld; do
  command -v "$tool" >/dev/null || skip "no $tool (packages bochs bochs-term bochsbios isolinux syslinux-common xorriso)"
done
# file_of PACKAGE END: the file of a Debian package whose path ends so.
file_of() {
  local found
  found=$(dpkg -L "$1" 2>/dev/null | grep -- "$2\$") || skip "no $2 (package $1)"
  echo "${found%%$'\n'*}"
}
bios=$(file_of bochsbios BIOS-bochs-latest)
video=$(file_of bochs VGABIOS-lgpl-latest)
loader=$(file_of isolinux ISOLINUX/isolinux.bin)

mkdir -p "$build/iso/isolinux"
"$write_cases" "$build/cases.bin"
cat >"$build/cases.S" <<S
.section .rodata
.balign 64
.globl cases_begin, cases_end
cases_begin: .incbin "$build/cases.bin"
cases_end:
S
flags=(-std=c++20 -O2 -I"$root" -I"$root/runtime/include" -ffp-contract=off -fno-exceptions -fno-rtti
  -fno-stack-protector -fno-pic -fno-pie -mno-red-zone -mcmodel=small -fno-asynchronous-unwind-tables
  -fno-threadsafe-statics -U_FORTIFY_SOURCE)
objects=()
compile() {
  local object
  object=$build/$(basename "$1").o
  "$compiler" "${flags[@]}" "${@:2}" -c "$1" -o "$object"
  objects+=("$object")
}
for kernels in blocks k_blocks; do
  compile "$root/quant/avx512/$kernels.cpp" "${vectors[@]}"
done
compile "$root/quant/activation_layout.cpp"
compile "$here/x86/check_cases.cpp"
"$compiler" -c "$here/x86/boot.S" -o "$build/boot.o"
"$compiler" -c "$build/cases.S" -o "$build/cases.o"
# What a linker says of sections that are written and executed is right and meant so.
ld -n -T "$here/x86/image.ld" -o "$build/image.elf" "$build/boot.o" "${objects[@]}" "$build/cases.o" \
  2>"$build/ld.log" || { cat "$build/ld.log" >&2; exit 1; }
objcopy -O binary "$build/image.elf" "$build/iso/image.bin"

cp "$loader" "$(file_of syslinux-common bios/ldlinux.c32)" "$(file_of syslinux-common bios/mboot.c32)" \
  "$(file_of syslinux-common bios/libcom32.c32)" "$build/iso/isolinux/"
printf 'DEFAULT image\nPROMPT 0\nLABEL image\n KERNEL mboot.c32\n APPEND /image.bin\n' >"$build/iso/isolinux/isolinux.cfg"
xorriso -as mkisofs -quiet -o "$build/boot.iso" -b isolinux/isolinux.bin -c isolinux/boot.cat -no-emul-boot \
  -boot-load-size 4 -boot-info-table "$build/iso" 2>/dev/null

# run_on CPU: boots the image; what it says goes to $build/serial, the status it ends with to `status`.
run_on() {
  cat >"$build/bochsrc" <<C
plugin_ctrl: serial=1, unmapped=1, speaker=0, parallel=0
config_interface: textconfig
display_library: term
megs: 64
romimage: file=$bios
vgaromimage: file=$video
boot: cdrom
ata0-master: type=cdrom, path=boot.iso, status=inserted
cpu: model=$1, count=1, ips=50000000, reset_on_triple_fault=0, ignore_bad_msrs=1
clock: sync=none, time0=local
com1: enabled=1, mode=file, dev=serial
log: bochs.log
panic: action=fatal
error: action=ignore
info: action=ignore
C
  rm -f "$build/serial"
  echo c >"$build/debugger"  # Debian's Bochs waits at the prompt of its debugger
  # In its folder: Bochs takes no blanks in the names of files.
  (cd "$build" && timeout -s KILL 120 script -qc "bochs-bin -q -f bochsrc -rc debugger" /dev/null \
    </dev/null >terminal 2>&1) || true
  status=$(sed -n 's/^RC //p' "$build/serial" 2>/dev/null | tr -d '\r')
}
run_on corei7_icelake_u
cat "$build/serial" 2>/dev/null || tail -n 5 "$build/bochs.log"
if [ "$status" != 0 ]; then
  echo "The image ended with status '${status:-none}' on a processor with AVX-512 VNNI." >&2
  exit 1
fi
# A processor without AVX-512 must be told from one with it: the test of the test.
run_on corei7_haswell_4770
if [ "$status" != 77 ]; then
  echo "The image ended with status '${status:-none}', not 77, on a processor without AVX-512." >&2
  exit 1
fi
