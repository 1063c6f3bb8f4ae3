#!/bin/sh
# Builds RankLib's jar from its source, at one commit, into the folder of archives: the same bytes
# with the same JDK. Needs git, a JDK (17 or later) and Commons Math 3; on Debian:
#   apt-get install git default-jdk-headless libcommons-math3-java
set -eu
mkdir -p "${1:?usage: envs/ranklib.sh FOLDER_OF_ARCHIVES}"
jar=$(cd "$1" && pwd)/RankLib-2.10.2.jar
source=${RANKLIB_SOURCE:-https://github.com/codelibs/ranklib.git}
commit=e43f605f2ccba8e43aefab7a17e69605ea865e35
math=${COMMONS_MATH:-/usr/share/java/commons-math3.jar}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git init --quiet "$work/source"
git -C "$work/source" fetch --quiet --depth 1 "$source" "$commit"
git -C "$work/source" checkout --quiet FETCH_HEAD
find "$work/source/src/main/java" -name '*.java' | LC_ALL=C sort > "$work/files"
javac -nowarn -XDsuppressNotes --release 11 -encoding UTF-8 -cp "$math" -d "$work/classes" "@$work/files"
cd "$work/classes"
find . -name '*.class' | LC_ALL=C sort > "$work/entries"
jar --create --file "$jar" --date 2020-12-17T02:43:57Z --main-class ciir.umass.edu.eval.Evaluator \
    "@$work/entries"
sha256sum "$jar"
