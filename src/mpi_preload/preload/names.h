// How an exported function gets its name: that of the MPI standard or of an MPI library, which only
// the linker sees; the compiler sees ours.
#pragma once

#define TUTTI_AS(symbol) __asm__(symbol) __attribute__((visibility("default")))

// Define(identifier, symbol) for every name of one Fortran binding: those of all compilers'
// manglings (name, name_, name__, NAME), those of BIND(C) modules (MPI_X_f, MPI_X_f08), and Open
// MPI's ompi_x_f, which its mpi_f08 module's mpi_x_f08_ calls.
#define TUTTI_MANGLINGS(Define, lower, upper, mixed, inner)                                  \
  Define(mixed##0, #lower) Define(mixed##1, #lower "_") Define(mixed##2, #lower "__")        \
      Define(mixed##3, #upper) Define(mixed##4, #mixed "_f") Define(mixed##5, #mixed "_f08") \
          Define(mixed##6, #inner)

// The same for definitions that share a macro: Define(identifier, symbol, more...).
#define TUTTI_MANGLINGS_OF(Define, lower, upper, mixed, inner, ...)                               \
  Define(mixed##0, #lower, __VA_ARGS__) Define(mixed##1, #lower "_", __VA_ARGS__)                 \
      Define(mixed##2, #lower "__", __VA_ARGS__) Define(mixed##3, #upper, __VA_ARGS__)            \
          Define(mixed##4, #mixed "_f", __VA_ARGS__) Define(mixed##5, #mixed "_f08", __VA_ARGS__) \
              Define(mixed##6, #inner, __VA_ARGS__)
