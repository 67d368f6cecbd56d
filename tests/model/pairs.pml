/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * The port at the other end of a rail, DESIGN.txt section 10.1 (btl_openib_partner.c). The lower process L has ports 0..N-1, whose numbers
 * name the rails; the higher process H has as many, and the records do not tell ports apart. Port i of L and port j of H are on one fabric
 * if FL(i)==FH(j). A message that was sent may arrive at any time, any number of times, or never. Either side may begin with any rail.
 *  -DN=2 -DONE  one fabric     -DN=2  two fabrics, wired crosswise     -DN=3  two fabrics: L has A, A, B and H has B, A, A
 *  -DERRORS     at any time a port of either side gives up, with or without a name, and reports this under its name
 *  without ERRORS every rail is up at the end
 * Properties: a rail that is up joins the same two ports on both sides, on one fabric; no two ports have one name; a report of H about one
 * port ends no rail of another port; no port takes the name of a rail that both sides have ended
 * Mutants: -DSHARE a port takes a name that another port has; -DRENAME a port with a name takes another name; -DLIST L takes any reply for a
 * reply of the port in its list; -DSTRAY a request counts that arrives on another fabric at a port of the same address; -DGUESS a port
 * without a name reports that it gives up, under the name in the list; -DLATE a port may take the name of an ended rail */
#ifndef N
#define N 2
#endif
#ifdef ONE
#define FL(i) 0
#define FH(j) 0
#elif N==2
#define FL(i) (i)
#define FH(j) (1-(j))
#else
#define FL(i) ((i)/2)
#define FH(j) ((j)==0)
#endif
#define NONE 9
#define A(i,j) ((i)*N+(j))
#if N==2
#define TAKEN(i) (name[0]==(i) || name[1]==(i))
#else
#define TAKEN(i) (name[0]==(i) || name[1]==(i) || name[2]==(i))
#endif
#ifdef SHARE
#define FREE(i) 1
#else
#define FREE(i) (!TAKEN(i))
#endif
#ifdef RENAME
#define NAMELESS(i,j) (name[j]!=(i))
#else
#define NAMELESS(i,j) (name[j]==NONE)
#endif
#ifdef LATE
#define OPEN(i) 1
#else
#define OPEN(i) (!ended[i])
#endif
#ifdef STRAY
#define REACHES(i,j) 1
#else
#define REACHES(i,j) (FL(i)==FH(j))
#endif
#ifdef LIST
#define FROM(i,j) (i)
#else
#define FROM(i,j) (j)
#endif
mtype = {CLOSED, REQUESTED, READY, UP, GONE};
mtype l[N]=CLOSED, h[N]=CLOSED;         /* state of each port */
byte name[N]=NONE, other[N]=NONE;       /* name: of each port of H; other: the partner of each port of L */
bit req[N*N], rep[N*N], rtu[N*N], ldown[N], hdown[N*N], ended[N];

#define JOINED(i,j) (other[i]==(j) && name[j]==(i) && FL(i)==FH(j))
#define STEP(i,j) \
  :: atomic { l[i]==REQUESTED && REACHES(i,j) && !req[A(i,j)] -> req[A(i,j)]=1 } \
  :: atomic { l[i]==REQUESTED && rep[A(i,j)] -> other[i]=FROM(i,j); l[i]=UP; rtu[A(i,j)]=1; assert(JOINED(i,other[i])) } \
  :: atomic { req[A(i,j)] && NAMELESS(i,j) && name[j]!=(i) && FREE(i) && OPEN(i) -> \
       assert(!TAKEN(i)); assert(h[j]!=UP && h[j]!=READY); assert(!ended[i]); name[j]=(i) } \
  :: atomic { req[A(i,j)] && name[j]==(i) && (h[j]==CLOSED || h[j]==REQUESTED) -> h[j]=READY; rep[A(i,j)]=1 } \
  :: atomic { rtu[A(i,j)] && name[j]==(i) && h[j]==READY -> assert(JOINED(i,j)); h[j]=UP } \
  FAIL(i,j)
#define PORT(i) \
  :: atomic { l[i]==CLOSED -> l[i]=REQUESTED }      /* L posts, or H asks */ \
  :: atomic { h[i]==CLOSED -> h[i]=REQUESTED } \
  DIE(i)
#ifdef ERRORS
#ifdef GUESS
#define SAYS(j) (name[j]==NONE -> (j) : name[j])
#else
#define SAYS(j) name[j]
#endif
#define FAIL(i,j) \
  :: atomic { h[j]!=GONE && SAYS(j)==(i) -> h[j]=GONE; hdown[A(i,j)]=1 } \
  :: atomic { hdown[A(i,j)] && l[i]!=GONE -> assert(name[j]==(i)); l[i]=GONE } \
  :: atomic { ldown[i] && name[j]==(i) && h[j]!=GONE -> h[j]=GONE }
#define DIE(i) \
  :: atomic { l[i]!=GONE && l[i]!=CLOSED -> l[i]=GONE; ldown[i]=1 } \
  :: atomic { h[i]!=GONE && name[i]==NONE -> h[i]=GONE } \
  :: atomic { ldown[i] && !TAKEN(i) && !ended[i] -> ended[i]=1 }
#else
#define FAIL(i,j)
#define DIE(i)
#endif

active proctype world() {
  do
  STEP(0,0) STEP(0,1) STEP(1,0) STEP(1,1) PORT(0) PORT(1)
#if N==3
  STEP(0,2) STEP(1,2) STEP(2,0) STEP(2,1) STEP(2,2) PORT(2)
#endif
  :: timeout -> break
  od;
#ifndef ERRORS
  assert(l[0]==UP && h[0]==UP && l[1]==UP && h[1]==UP && l[N-1]==UP && h[N-1]==UP)
#endif
}
