#!/usr/bin/env bash
# install_test.sh CMAKE BUILD CONSUMER COMPILER BUILD_TYPE GENERATOR FLAGS: installs the build into a scratch prefix,
# moves the prefix, builds and runs a project of its own against it, and runs the installed command
# without naming a model. The prefix is moved because packages are built in one place and used in another.
set -euo pipefail
cmake=$1 build=$2 consumer=$3 compiler=$4 build_type=$5 generator=$6 flags=$7

scratch="$build/test/scratch/install"
rm -rf "$scratch"
mkdir -p "$scratch"
"$cmake" --install "$build" --prefix "$scratch/first prefix" >"$scratch/install.log"
mv "$scratch/first prefix" "$scratch/prefix"
prefix=$scratch/prefix

# The installed files must not lean on the source or the build tree.
if grep -rIlF -e "$build/" -e "first prefix" "$prefix" --include='*.cmake' --include='*.h'; then
  echo "install_test: the files above name the build tree or the first prefix"
  exit 1
fi

"$cmake" -G "$generator" -S "$consumer" -B "$scratch/build" -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE="$build_type" \
  -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/configure.log" ||
  { cat "$scratch/configure.log"; exit 1; }
"$cmake" --build "$scratch/build"
output=$("$scratch/build/consumer")
echo "$output"
[ "$output" = "1.5 -2 7" ] || { echo "install_test: expected 1.5 -2 7"; exit 1; }

[ -x "$prefix/bin/lockstep" ] || { echo "install_test: no command installed"; exit 1; }
cd /
story=$("$prefix/bin/lockstep" generate --chat --max-tokens 60 "Tell me a story about an owl who lost a lantern.")
echo "$story"
[[ $story == *owl* ]] || { echo "install_test: no owl in the story"; exit 1; }
echo "install_test: passed"
